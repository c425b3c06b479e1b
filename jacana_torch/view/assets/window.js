"use strict";
/* A long list of which only what is near the window is in the page.

   Items have places from the heights that they had, or are estimated to have. `host` is as tall as all of them, and
   `made(k)` returns the element of item k, `estimated(width)` a function of k. Whatever becomes taller or shorter, what is being looked at stays in place. */
const JacanaWindow = (() => {
  const [NEAR, SEEN] = [700, 300]; // pixels above and below the window
  const BETWEEN = 14;

  function windowed(host, { made, estimated, settled }) {
    let count = 0;
    let heights = new Float64Array(0);
    let tops = new Float64Array(1);
    let known = new Uint8Array(0); // whether a height was measured
    let whole = false; // all items are wanted, to be printed
    let width = 0;
    let waiting = 0;
    let near = NEAR;
    const open = new Map(); // number -> element, in order of the page
    const sizes = new ResizeObserver(later);

    function later() {
      if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; update(); });
    }

    function show(number) {
      count = number;
      heights = new Float64Array(count);
      known = new Uint8Array(count);
      for (const element of open.values()) sizes.unobserve(element);
      open.clear();
      host.replaceChildren();
      estimate();
      const start = host.getBoundingClientRect().top;
      if (start < 0) scrollBy(0, start - parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop || 0));
      near = SEEN; // what can be seen comes first
      update();
      near = NEAR;
      later();
    }

    function estimate() {
      width = host.clientWidth;
      const tall = estimated(width);
      for (let k = 0; k < count; k++) if (!known[k]) heights[k] = tall(k) + BETWEEN;
      stack();
    }

    function stack() {
      tops = new Float64Array(count + 1);
      for (let k = 0; k < count; k++) tops[k + 1] = tops[k] + heights[k];
      host.style.height = whole ? "" : `${tops[count]}px`;
      for (const [k, element] of open) element.style.top = `${tops[k]}px`;
    }

    /* The first item that ends after this place. */
    function at(place) {
      let [low, high] = [0, count];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (tops[middle + 1] > place) high = middle; else low = middle + 1;
      }
      return low;
    }

    function focused() {
      const element = document.activeElement;
      for (const [k, one] of open) if (one.contains(element)) return k;
      return -1;
    }

    function wanted(also) {
      const top = -host.getBoundingClientRect().top;
      const [first, last] = whole ? [0, count - 1] : [at(top - near), at(top + innerHeight + near)];
      const numbers = [];
      for (let k = first; k <= last && k < count; k++) numbers.push(k);
      for (const k of also) if (k >= 0 && k < count && (k < first || k > last)) numbers.push(k);
      return numbers.sort((a, b) => a - b);
    }

    /* Puts in what is near, takes out what is far, and measures; `keep` is an item that must be there. */
    function update(keep = -1) {
      if (host.clientWidth !== width) resized();
      for (let round = 0; round < 4; round++) {
        const anchor = anchored();
        const before = anchor ? anchor.getBoundingClientRect().top : 0;
        const fresh = exchange(wanted([focused(), keep]));
        if (fresh.length) settled(fresh);
        const moved = measure();
        if (anchor && anchor.isConnected) scrollBy(0, anchor.getBoundingClientRect().top - before);
        if (!fresh.length && !moved) break;
      }
    }

    function exchange(numbers) {
      const stay = new Set(numbers);
      for (const [k, element] of open) {
        if (stay.has(k)) continue;
        sizes.unobserve(element);
        element.remove();
        open.delete(k);
      }
      const fresh = [];
      let after = null;
      for (const k of numbers.reverse()) {
        let element = open.get(k);
        if (!element) {
          element = made(k);
          element.style.top = `${tops[k]}px`;
          host.insertBefore(element, after);
          open.set(k, element);
          sizes.observe(element);
          fresh.push(k);
        }
        after = element;
      }
      return fresh;
    }

    function measure() {
      let moved = false;
      for (const [k, element] of open) {
        const height = element.offsetHeight + BETWEEN;
        moved ||= height !== heights[k];
        heights[k] = height;
        known[k] = 1;
      }
      if (moved) stack();
      return moved;
    }

    /* What is being looked at: the focused item if it can be seen, or the first that can. */
    function anchored() {
      const seen = (element) => {
        const box = element.getBoundingClientRect();
        return box.bottom > 100 && box.top < innerHeight;
      };
      const active = open.get(focused());
      if (active && seen(active)) return active;
      if (host.getBoundingClientRect().top > 0) return null;
      return [...open].sort(([a], [b]) => a - b).map(([, element]) => element).find(seen) || null;
    }

    function resized() {
      known.fill(0);
      estimate();
      settled([...open.keys()]);
    }

    function focus(k) {
      if (!count) return;
      const wish = Math.min(Math.max(k, 0), count - 1);
      update(wish);
      open.get(wish).focus({ preventScroll: true });
      open.get(wish).scrollIntoView({ block: "nearest" });
      update();
    }

    /* Makes everything anew that is there: it is drawn in another way now. */
    function again() {
      const [anchor, active] = [anchored(), focused()];
      const number = [...open].find(([, element]) => element === anchor)?.[0];
      const before = anchor ? anchor.getBoundingClientRect().top : 0;
      for (const [k, element] of open) {
        sizes.unobserve(element);
        open.set(k, made(k));
        element.replaceWith(open.get(k));
        sizes.observe(open.get(k));
      }
      known.fill(0);
      estimate();
      settled([...open.keys()]);
      measure();
      if (active >= 0) open.get(active).focus({ preventScroll: true });
      if (anchor) scrollBy(0, open.get(number).getBoundingClientRect().top - before);
      update();
    }

    function print(all) {
      whole = all;
      host.classList.toggle("whole", all);
      stack();
      update();
    }

    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    sizes.observe(host);

    return { show, update, again, focus, focused, print, open };
  }

  return { windowed };
})();
