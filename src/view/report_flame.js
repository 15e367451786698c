/* The flame graph's zoom, search and words. The picture is in the page without it. */
(function () {
  "use strict";
  const pictures = Array.from(document.querySelectorAll("svg.flame"));
  const words = document.getElementById("flame-at");
  const find = document.getElementById("flame-find");
  const reset = document.getElementById("flame-reset");
  const inside = document.getElementById("flame-inside");
  const LETTER = 6.5, READ = 8, ROW = 19; // pixels: of a letter; a box that can be seen; as in report_flame.c
  if (!pictures.length) return;

  // Boxes come parents first, and each lies within the one above it.
  function boxes_of(svg) {
    const above = [];
    return Array.from(svg.children).map((element) => {
      const lines = element.querySelector("title").textContent.split("\n");
      const box = {
        element, name: lines[0], size: lines[1], text: element.querySelector("text"), below: [],
        x: parseFloat(element.getAttribute("x")), width: parseFloat(element.getAttribute("width")),
        row: Number(element.getAttribute("y")) / ROW,
      };
      box.above = above[box.row - 1] || null;
      if (box.above) box.above.below.push(box);
      above[box.row] = box;
      element.box = box;
      return box;
    });
  }
  function label(box, room) {
    const letters = Math.floor((room - 8) / LETTER);
    if (letters < 3) {
      if (box.text) box.text.textContent = "";
      return;
    }
    if (!box.text) {
      box.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      box.text.setAttribute("x", 5);
      box.text.setAttribute("y", 13);
      box.element.append(box.text);
    }
    // In a narrow box native code goes by its function alone.
    const short = box.name.replace(/^([^:]*(?:::[^:]*)*\)) in \S+$/, "$1");
    const name = box.name.length <= letters ? box.name : short;
    const full = name + "  " + box.size.split(",")[0];
    box.text.textContent = full.length <= letters ? full
      : name.length <= letters ? name : name.slice(0, letters - 1) + "\u2026";
  }
  function say(box) {
    words.textContent = box ? box.name + " \u2014 " + box.size : "";
  }

  function Flame(svg) {
    const boxes = boxes_of(svg), root = boxes[0];
    let shown = root, at = root;

    function draw() {
      const wide = svg.getBoundingClientRect().width, path = new Set();
      let rows = shown.row + 1;
      for (let b = shown.above; b; b = b.above) path.add(b);
      boxes.forEach((box) => {
        const left = Math.max((box.x - shown.x) / shown.width, 0);
        const right = Math.min((box.x + box.width - shown.x) / shown.width, 1);
        const out = right - left < 1e-6 || (box.row <= shown.row && box !== shown && !path.has(box));
        box.element.style.display = out ? "none" : "";
        box.element.classList.toggle("way", path.has(box));
        if (out) return;
        box.element.setAttribute("x", left * 100 + "%");
        box.element.setAttribute("width", (right - left) * 100 + "%");
        label(box, (right - left) * wide);
        if ((right - left) * wide >= READ) rows = Math.max(rows, box.row + 1);
      });
      svg.setAttribute("height", rows * ROW);
      reset.hidden = shown === root;
    }
    function zoom(box) {
      shown = box;
      go(box);
      draw();
    }
    function go(box) {
      at.element.classList.remove("at");
      at = box;
      at.element.classList.add("at");
      say(at);
    }
    function beside(step) {
      const row = boxes.filter((b) => b.row === at.row && b.element.style.display !== "none");
      return row[row.indexOf(at) + step] || at;
    }
    const keys = {
      ArrowLeft: () => go(beside(-1)),
      ArrowRight: () => go(beside(1)),
      ArrowUp: () => go(at.above || at),
      ArrowDown: () => go(at.below[0] || at),
      Home: () => go(shown),
      Enter: () => zoom(at),
      " ": () => zoom(at),
      Escape: () => zoom(root),
      0: () => zoom(root),
    };
    svg.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
    svg.addEventListener("click", (event) => {
      const element = event.target.closest("svg.flame > svg");
      if (element) zoom(element.box === shown && shown.above ? shown.above : element.box);
    });
    svg.addEventListener("pointerover", (event) => {
      const element = event.target.closest("svg.flame > svg");
      if (element) say(element.box);
    });
    svg.addEventListener("pointerleave", () => say(at === root && shown === root ? null : at));
    svg.addEventListener("blur", () => at.element.classList.remove("at"));

    function search(text) {
      const seek = text.trim().toLowerCase(), hits = new Set();
      let part = 0;
      boxes.forEach((box) => {
        const hit = seek !== "" && box.name.toLowerCase().includes(seek);
        box.element.classList.toggle("hit", hit);
        if (!hit) return;
        hits.add(box);
        let b = box.above;
        while (b && !hits.has(b)) b = b.above;
        if (!b) part += box.width; // a caller that counts already holds it
      });
      svg.classList.toggle("finding", seek !== "");
      return seek === "" ? "" : hits.size === 0 ? "nothing is called so"
        : hits.size + (hits.size === 1 ? " box, " : " boxes, ") + part.toFixed(part < 9.95 ? 1 : 0) + " % of the memory";
    }
    return { svg, draw, search, home: () => zoom(root) };
  }

  const flames = pictures.map(Flame);
  function shown() {
    return flames.find((f) => f.svg.getClientRects().length > 0) || flames[0];
  }
  function look() {
    const told = flames.map((f) => f.search(find.value));
    words.textContent = told[flames.indexOf(shown())];
  }
  document.querySelectorAll("#flame .needs-js").forEach((e) => { e.hidden = false; });
  find.addEventListener("input", look);
  find.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    find.value = "";
    look();
  });
  reset.addEventListener("click", () => shown().home());
  if (inside) inside.addEventListener("click", () => {
    const on = inside.getAttribute("aria-pressed") !== "true";
    inside.setAttribute("aria-pressed", String(on));
    flames[0].svg.classList.toggle("gone", on);
    document.getElementById("flame-whole").hidden = !on;
    shown().home();
    if (find.value) look();
  });
  // Paper has no cursor: it gets the whole picture.
  window.addEventListener("beforeprint", () => shown().home());
  if (window.ResizeObserver) {
    const watch = new ResizeObserver(() => shown().draw());
    pictures.forEach((p) => watch.observe(p));
  }
  shown().draw();
})();
