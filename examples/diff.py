"""What changed between two versions of a text.

python examples/diff.py
"""

import jacana_torch as jt

OLD = """The committee approved the new budget on Monday. It gives the harbour two million dollars.
Nobody objected.
The old lighthouse will be closed in winter, and visitors may not enter it. Boats leave every hour."""
NEW = """The panel passed the new budget on Monday. Boats leave every hour.
It gives the harbour three million dollars.
The old lighthouse will be closed in winter. Visitors may not enter it. Tickets cost five dollars."""


def main() -> None:
    found = jt.diff(OLD, NEW, "standard")
    print(found.to_text(), "\n")
    for piece, edit in found.changes:
        why = f"  ({edit.reason})" if edit.reason else ""
        print(f"{piece.paired.kind:8} {edit.kind:10} {edit.before or '-'} -> {edit.after or '-'}{why}")
    print()
    for kind, old, new in jt.pair_sentences(OLD, NEW, "standard"):
        print(f"{kind:8} {len(old)} to {len(new)}")


if __name__ == "__main__":
    main()
