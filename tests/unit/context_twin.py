"""Surroundings, anchors, runs and competitors of one pair's cells, by nested loops over a matrix of similarities.

Sums are added up in the order in which the families add them, for a tie decides who wins.
"""

from __future__ import annotations

from feature_twin import Bases, class_of

Matrix = list[list[float]]
Row = dict[str, float]
TIE = 1e-5


class Surroundings:
    """One pair under a matrix `similarity[m][n]`."""

    def __init__(self, twin: Bases, similarity: Matrix) -> None:
        self.M, self.N, self.similarity = twin.M, twin.N, similarity
        self.content = [
            [class_of(w) not in ("punct", "function") for w in words] for words in (twin.source, twin.target)
        ]

    def at(self, m: int, n: int) -> float:
        return self.similarity[m][n] if 0 <= m < self.M and 0 <= n < self.N else 0.0

    def cells(self) -> list[tuple[int, int]]:
        return [(m, n) for m in range(self.M) for n in range(self.N)]

    def far(self, m: int, n: int) -> float:
        return abs(m / self.M - n / self.N)

    def next_content(self, side: int, position: int, step: int) -> int | None:
        words = self.content[side]
        positions = range(position + 1, len(words)) if step > 0 else range(position - 1, -1, -1)
        return next((k for k in positions if words[k]), None)

    def anchors(self, m: int, n: int) -> Row:
        out: Row = {}
        for side, step in (("left", -1), ("right", 1)):
            i, j = self.next_content(0, m, step), self.next_content(1, n, step)
            both = i is not None and j is not None
            found = self.at(i, j) if both else 0.0
            out[f"{side}_anchor_same"] = found >= 0.9
            out[f"{side}_anchor_similar"] = found > 0
            out[f"{side}_anchor_differs"] = both and found == 0
        out["both_anchors"] = out["left_anchor_similar"] and out["right_anchor_similar"]
        out["no_anchor"] = out["left_anchor_differs"] and out["right_anchor_differs"]
        return out

    def run(self, m: int, n: int, longest: int = 6) -> int:
        """How many cells of the diagonal through this one match without a gap, at most 5 on either side."""
        if self.at(m, n) < 0.9:
            return 0
        total = 1
        for step in (-1, 1):
            d = 1
            while d < longest and self.at(m + step * d, n + step * d) >= 0.9:
                d += 1
            total += d - 1
        return total

    def competition(self, score: Matrix) -> tuple[list[Row], list[Row]]:
        """What `competition` says of every cell and every source token."""
        like = self.similarity
        row_margin = [[0.0] * self.N for _ in range(self.M)]
        column_margin = [[0.0] * self.N for _ in range(self.M)]
        for m, n in self.cells():
            row = score[m][n] - max([score[m][j] for j in range(self.N) if j != n], default=-1)
            column = score[m][n] - max([score[i][n] for i in range(self.M) if i != m], default=-1)
            row_margin[m][n], column_margin[m][n] = row, column
        candidates = [sum(x > 0 for x in row) for row in like]
        suitors = [sum(like[m][n] > 0 for m in range(self.M)) for n in range(self.N)]
        links = []
        for m, n in self.cells():
            row, column, alike = row_margin[m][n], column_margin[m][n], like[m][n] > 0
            lonely, unsought = candidates[m] == 0, suitors[n] == 0
            links.append(
                {
                    "wins_row": alike and row > TIE, "wins_column": alike and column > TIE,
                    "wins_both": alike and row > TIE and column > TIE,
                    "loses_both": alike and row <= TIE and column <= TIE,
                    "identical_loses_row": like[m][n] >= 1 and row <= TIE,
                    "identical_loses_column": like[m][n] >= 1 and column <= TIE,
                    "row_margin": max(-1, min(1, row)) if alike else 0,
                    "column_margin": max(-1, min(1, column)) if alike else 0,
                    "row_better": 0 if alike else max(0, min(1, -row)),
                    "column_better": 0 if alike else max(0, min(1, -column)),
                    "row_free": lonely, "column_free": unsought, "both_free": lonely and unsought,
                    "only_pair": alike and candidates[m] == suitors[n] == 1,
                }
            )  # fmt: skip
        nulls = []
        for m in range(self.M):
            alike = [n for n in range(self.N) if like[m][n] > 0]
            wins = any(row_margin[m][n] > TIE and column_margin[m][n] > TIE for n in alike)
            nulls.append(
                {
                    "null_no_candidate": not alike, "null_some_wins": wins,
                    "null_none_wins": bool(alike) and not wins,
                    "null_margin": max((max(-1, min(1, column_margin[m][n])) for n in alike), default=0),
                    "null_best_company": min(2, max([0.0, *(score[m][n] for n in alike)])) / 2,
                }
            )  # fmt: skip
        return links, nulls

    def again(self) -> tuple[list[Row], list[Row]]:
        """What `context_of` says: neighbours, anchors and competitors for a family with its own similarity."""
        links, score = [], [[0.0] * self.N for _ in range(self.M)]
        for m, n in self.cells():
            row: Row = {f"near_{d:+d}": self.at(m + d, n + d) for d in (-2, -1, 1, 2)}
            diagonal = sum(row.values()) / 4
            row["near_both"] = row["near_-1"] * row["near_+1"]
            row |= self.anchors(m, n)
            links.append(row)
            anchors = row["left_anchor_similar"] + row["right_anchor_similar"]
            score[m][n] = self.at(m, n) + 0.5 * diagonal + 0.2 * anchors - 0.1 * self.far(m, n)
        competitors, nulls = self.competition(score)
        return [a | b for a, b in zip(links, competitors, strict=True)], nulls
