/* The report's cursor, zoom and switches. Everything that is said is in the page without it. */
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const WIDE = 10000, TALL = 1000, TICKS = 8; // as in report_parts.h and report_plot.c
  const holder = document.getElementById("data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const END = data.end_ms;
  const plots = Array.from(document.querySelectorAll("svg.plot"));
  const clock = document.getElementById("clock");
  const reset = document.getElementById("reset");
  const view = { from: 0, to: END, at: null };

  // ---- figures, as report_text.c writes them ----

  function size(v) {
    const units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let i = 0;
    for (; v >= 1023.5 && i + 1 < units.length; i++) v /= 1024;
    return v.toFixed(i > 0 && v < 99.95 ? 1 : 0) + " " + units[i];
  }
  function two(n) {
    return String(n).padStart(2, "0");
  }
  function time(ms) {
    const s = ms / 1000;
    if (ms < 999.5) return Math.round(ms) + " ms";
    if (s < 9.95) return s.toFixed(1) + " s";
    if (s < 59.5) return Math.round(s) + " s";
    const m = Math.floor(s / 60), rest = Math.floor(s % 60);
    if (m < 60) return m + " min " + two(rest) + " s";
    const h = Math.floor(m / 60);
    if (h < 24) return h + " h " + two(m % 60) + " min";
    return Math.floor(h / 24) + " d " + two(h % 24) + " h";
  }
  const write = {
    bytes: size,
    per_s: (v) => size(v) + "/s",
    percent: (v) => (v * 100).toFixed(v > 0 && v < 0.0995 ? 1 : 0) + " %",
    cores: (v) => v.toFixed(1) + " cores",
    seconds: (v) => time(v * 1000),
  };
  const S = 1000, MIN = 60 * S, H = 60 * MIN, D = 24 * H;
  const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, S, 2 * S, 5 * S, 10 * S, 15 * S, 30 * S, MIN, 2 * MIN, 5 * MIN,
    10 * MIN, 15 * MIN, 30 * MIN, H, 2 * H, 3 * H, 6 * H, 12 * H, D, 2 * D, 5 * D, 10 * D];
  function tick(ms, step) {
    const h = Math.floor(ms / H), min = Math.floor(ms / MIN) % 60, s = Math.floor(ms / S) % 60;
    if (ms === 0) return "0";
    if (step >= D) return Math.floor(h / 24) + " d";
    if (ms % H === 0) return h + " h";
    if (h > 0) return h + ":" + two(min) + (step < MIN ? ":" + two(s) : "") + " h";
    if (ms % MIN === 0) return min + " min";
    const fine = step < S ? "." + String(ms % S).padStart(3, "0").replace(/0+$/, "") : "";
    if (min > 0) return min + ":" + two(s) + (fine.length > 1 ? fine : "");
    return Number((ms / S).toFixed(3)) + " s";
  }

  // ---- what is shown where ----

  function percent(t) {
    return ((t - view.from) / (view.to - view.from)) * 100;
  }
  function make(name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function ticks(plot) {
    const group = plot.querySelector(".xg"), height = Number(plot.getAttribute("height"));
    const span = view.to - view.from;
    const step = STEPS.find((s) => s * TICKS >= span) || 30 * D;
    group.textContent = "";
    for (let t = Math.ceil(view.from / step) * step, i = 0; t <= view.to && i <= TICKS; t += step, i++) {
      const x = percent(t), edge = x < 2 ? " first" : x > 97 ? " last" : "";
      group.append(make("line", { x1: x + "%", x2: x + "%", y1: 14, y2: height - 20 }),
        make("text", { class: (i % 2 ? "odd" : "even") + edge, x: x + "%", y: height - 5 }, tick(t, step)));
    }
  }
  function place(element) {
    const t = Number(element.dataset.t), to = Number(element.dataset.to || t), x = percent(t);
    const out = to < view.from || t > view.to;
    element.style.display = out ? "none" : "";
    if (out) return;
    if (element.tagName === "line") {
      element.setAttribute("x1", x + "%");
      element.setAttribute("x2", x + "%");
    } else {
      element.setAttribute("x", Math.max(x, element.tagName === "rect" ? 0 : x) + "%");
      if (element.tagName === "rect") element.setAttribute("width", Math.min(percent(to), 100) - Math.max(x, 0) + "%");
    }
  }
  function draw() {
    const x = (view.from / END) * WIDE, width = ((view.to - view.from) / END) * WIDE;
    document.querySelectorAll("svg.paths").forEach((s) => s.setAttribute("viewBox", `${x} 0 ${width} ${TALL}`));
    document.querySelectorAll("svg [data-t]").forEach(place);
    plots.forEach(ticks);
    reset.hidden = view.from === 0 && view.to === END;
    point(view.at);
  }
  function zoom(from, to) {
    const least = Math.max(END / 200, Math.min(END, 20)); // five points of a line, or there is nothing to see
    const span = Math.min(Math.max(to - from, least), END);
    const middle = (from + to) / 2;
    view.from = Math.min(Math.max(middle - span / 2, 0), END - span);
    view.to = view.from + span;
    draw();
  }

  // ---- the cursor ----

  function nearest(list, t) {
    let low = 0, high = list.length - 1;
    while (high - low > 1) {
      const mid = (low + high) >> 1;
      if (list[mid] <= t) low = mid;
      else high = mid;
    }
    return t - list[low] <= list[high] - t ? low : high;
  }
  function index(series, t) {
    const n = series.mid.length;
    if (series.at) return nearest(series.at, t);
    const i = Math.min(Math.floor((t / END) * n), n - 1);
    for (let d = 0; d <= series.joint / 2; d++) {
      if (series.mid[i - d] >= 0) return i - d;
      if (series.mid[i + d] >= 0) return i + d;
    }
    return -1;
  }
  function point(t) {
    view.at = t;
    document.documentElement.classList.toggle("pointing", t !== null);
    plots.forEach((p) => {
      const line = p.querySelector(".cursor");
      line.style.display = t === null ? "none" : "";
      if (t !== null) ["x1", "x2"].forEach((a) => line.setAttribute(a, percent(t) + "%"));
    });
    data.series.forEach((series) => {
      if (!series.cell) return;
      const i = t === null ? -1 : index(series, t);
      series.cell.textContent = i < 0 ? "" : write[series.unit](series.mid[i] * series.scale);
      series.cell.title = i >= 0 && series.hi && series.hi[i] > 0
        ? "up to " + write[series.unit]((series.mid[i] + series.hi[i]) * series.scale) : "";
    });
    clock.textContent = t === null ? "" : "after " + time(t) + wall(t);
  }
  function wall(t) {
    if (!data.started_s) return "";
    const date = new Date(data.started_s * 1000 + t);
    return ", at " + two(date.getHours()) + ":" + two(date.getMinutes()) + ":" + two(date.getSeconds());
  }
  function time_at(plot, event) {
    const box = plot.getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    return view.from + part * (view.to - view.from);
  }

  // ---- hands ----

  function listen(plot) {
    let start = null;
    const selection = plot.appendChild(make("rect", { class: "sel", y: 14, height: plot.getAttribute("height") - 34 }));
    plot.appendChild(make("line", { class: "cursor", y1: 14, y2: plot.getAttribute("height") - 20 }));
    selection.style.display = "none";
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      start = { x: event.clientX, t: time_at(plot, event) };
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      const t = time_at(plot, event);
      point(t);
      if (!start) return;
      selection.style.display = "";
      selection.setAttribute("x", percent(Math.min(t, start.t)) + "%");
      selection.setAttribute("width", Math.abs(percent(t) - percent(start.t)) + "%");
    });
    plot.addEventListener("pointerup", (event) => {
      const from = start;
      start = null;
      selection.style.display = "none";
      if (!from || Math.abs(event.clientX - from.x) < 6) return;
      const t = time_at(plot, event);
      zoom(Math.min(t, from.t), Math.max(t, from.t));
    });
    plot.addEventListener("pointercancel", () => {
      start = null;
      selection.style.display = "none";
    });
    plot.addEventListener("pointerleave", () => point(null));
    plot.addEventListener("dblclick", () => zoom(0, END));
    plot.addEventListener("blur", () => point(null));
    plot.addEventListener("keydown", press);
  }
  const keys = {
    ArrowLeft: (at, step) => move(at - step),
    ArrowRight: (at, step) => move(at + step),
    Home: () => move(view.from),
    End: () => move(view.to),
    "+": (at) => around(at, 0.5),
    "=": (at) => around(at, 0.5),
    "-": (at) => around(at, 2),
    0: () => zoom(0, END),
    Escape: () => zoom(0, END),
  };
  function press(event) {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(view.at === null ? (view.from + view.to) / 2 : view.at, (view.to - view.from) / (event.shiftKey ? 10 : 100));
  }
  function move(t) {
    const span = view.to - view.from;
    view.at = Math.min(Math.max(t, 0), END);
    if (view.at < view.from) zoom(view.at, view.at + span);
    else if (view.at > view.to) zoom(view.at - span, view.at);
    else point(view.at);
  }
  function around(at, factor) {
    const part = (at - view.from) / (view.to - view.from), span = (view.to - view.from) * factor;
    view.at = at;
    zoom(at - part * span, at + (1 - part) * span);
  }
  function switches(series) {
    const row = document.querySelector(`tr[data-s="${series.id}"]`), lines = document.getElementById(series.id);
    if (!row) return;
    series.cell = row.querySelector(".now");
    const key = row.querySelector(".key");
    if (!lines || !key || series.at || series.stacked) return; // a stack without one of its layers would lie
    const button = document.createElement("button");
    button.type = "button";
    button.className = key.className;
    button.textContent = key.textContent;
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      const off = lines.classList.toggle("off");
      row.classList.toggle("off", off);
      button.setAttribute("aria-pressed", String(!off));
    });
    key.replaceWith(button);
  }
  function start() {
    document.documentElement.classList.add("js");
    document.querySelectorAll(".needs-js").forEach((e) => { e.hidden = false; });
    data.series.forEach(switches);
    plots.forEach(listen);
    document.querySelectorAll(".events tr[data-t]").forEach((row) => {
      row.addEventListener("pointerenter", () => point(Number(row.dataset.t)));
      row.addEventListener("pointerleave", () => point(null));
    });
    const look = document.getElementById("look");
    if (look) look.addEventListener("click", () => {
      const from = Number(look.dataset.t), to = Math.min(Number(look.dataset.to), END), edge = (to - from) / 8;
      zoom(Math.max(from - edge, 0), Math.min(to + edge, END));
      document.getElementById("timeline").scrollIntoView({ behavior: "smooth" });
    });
    point(null);
  }
  // Paper cannot unfold; the stacks of lines would fill it.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open]):not(.lines details)"));
    opened.forEach((d) => { d.open = true; });
  });
  window.addEventListener("afterprint", () => opened.forEach((d) => { d.open = false; }));
  if (reset) {
    reset.addEventListener("click", () => zoom(0, END));
    start();
  }
})();
