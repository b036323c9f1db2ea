#pragma once

#include <string_view>

namespace stowage::inline v0_1::detail {

// Not for Doxygen: @title@ and @data@ in it are filled in.
// The page of a memory map. Colours are those of report/svg.hpp.
inline constexpr std::string_view html_page = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>@title@</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.2rem; color: #222; background: #fff; }
h1 { font-size: 1.25rem; margin: 0 0 .3rem; }
h2 { font-size: 1.05rem; margin: 1.2rem 0 .3rem; }
#map { position: relative; height: 72px; background: #e8e8e8; overflow: hidden; cursor: grab; }
#map div { position: absolute; top: 0; height: 100%; box-sizing: border-box; overflow: hidden; white-space: nowrap; }
#map .buffer { border-right: 1px solid #fff; color: #fff; font-size: 12px; line-height: 24px; text-indent: 4px; }
#map .live { top: auto; bottom: 0; height: 45%; background: rgba(0, 0, 0, .45); pointer-events: none; }
.rows { background: #2a9d8f; } .full { background: #e9a820; } .never { background: #5b7fa6; }
.key { display: inline-block; width: 12px; height: 12px; margin: 0 4px 0 12px; vertical-align: -1px; }
#scale { display: flex; justify-content: space-between; color: #555; font-size: 12px; }
#tip { position: fixed; display: none; max-width: 36rem; background: #111; color: #fff; padding: .4rem .6rem;
  border-radius: 4px; font-size: 13px; pointer-events: none; z-index: 2; white-space: pre-line; }
.controls { margin: .5rem 0; display: flex; gap: .5rem; align-items: center; flex-wrap: wrap; }
#tokens { width: 24rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 1px 10px 1px 0; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; }
tbody tr:hover { background: #f0f4f8; }
#buffers tbody tr { cursor: pointer; }
td .bar { display: inline-block; position: relative; height: 11px; background: #e8e8e8; width: 200px; }
td .bar i { position: absolute; left: 0; top: 0; height: 100%; }
td .bar b { position: absolute; top: 55%; height: 45%; background: rgba(0, 0, 0, .45); }
code { font-size: 12.5px; }
</style>
</head>
<body>
<h1 id="title"></h1>
<div id="summary"></div>
<div class="controls">
  <button id="in" type="button">Zoom in</button><button id="out" type="button">Zoom out</button>
  <button id="fit" type="button">Whole slab</button>
  <span>Wheel: zoom. Drag: move. Click a buffer in the list: see it whole.</span>
</div>
<div id="map"></div>
<div id="scale"><span id="from"></span><span id="to"></span></div>
<div class="controls">
  <label for="tokens">Rows live at T =</label><output id="count"></output>
  <input id="tokens" type="range" min="0" step="1">
  <span id="pass"></span>
</div>
<div><span class="key rows"></span>zero rows<span class="key full"></span>zero full<span class="key never"></span>zero never
<span class="key" style="background:#888"></span>darker: what a row pass over T tokens clears</div>
<h2>Buffers</h2>
<table id="buffers"><thead><tr><th>buffer</th><th>live at T</th><th class="number">bytes</th><th class="number">offset</th>
<th class="number">row pass</th><th>zero</th><th>element and shape</th></tr></thead><tbody></tbody></table>
<h2 id="absent-title">Absent</h2>
<table id="absent"><tbody></tbody></table>
<div id="tip" role="tooltip"></div>
<script type="application/json" id="data">@data@</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const map = byId("map"), tip = byId("tip"), slider = byId("tokens");
const present = data.buffers.filter(b => b.bytes > 0).sort((a, b) => a.offset - b.offset);
for (const b of data.buffers)
  b.live.forEach((ranges, at) => { if (ranges === null) b.live[at] = b.live[at - 1]; });
let from = 0, to = Math.max(data.slab_bytes, 1);

const human = n => {
  if (n < 1024) return n + " B";
  let unit = -1;
  do { n /= 1024; ++unit; } while (n >= 1023.95 && unit < 5);
  return n.toFixed(1) + " " + ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][unit];
};
const make = (tag, parent, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  parent.append(element);
  return element;
};
const rangesOf = b => b.live[Number(slider.value)];
const liveBytes = b => {
  let bytes = 0;
  const ranges = rangesOf(b);
  for (let at = 0; at < ranges.length; at += 2) bytes += ranges[at + 1] - ranges[at];
  return bytes;
};
const describe = b => `${b.name}
${b.bytes} bytes (${human(b.bytes)})${b.copies > 1 ? " x " + b.copies : ""} at offset ${b.offset}
${b.formula}
zero ${b.zero}; T = ${data.tokens[slider.value]}: ${liveBytes(b)} bytes cleared`;

function point(element, b) {
  element.addEventListener("pointermove", event => {
    tip.textContent = describe(b);
    tip.style.display = "block";
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
  });
  element.addEventListener("pointerleave", () => { tip.style.display = "none"; });
}

/* The part of [begin, end) in view, as an element; nothing where there is none. */
function place(begin, end, name) {
  const scale = map.clientWidth / (to - from);
  const left = Math.max(begin, from), right = Math.min(end, to);
  if (left >= right) return null;
  const element = make("div", map, undefined, name);
  element.style.left = (left - from) * scale + "px";
  element.style.width = (right - left) * scale + "px";
  return element;
}

function draw() {
  map.replaceChildren();
  for (const b of present) {
    const element = place(b.offset, b.offset + b.extent, "buffer " + b.zero);
    if (!element) continue;
    element.dataset.name = b.name;
    if (parseFloat(element.style.width) > 30) element.textContent = b.name;
    if (parseFloat(element.style.width) < 3) element.style.borderRight = "none";
    point(element, b);
    const ranges = rangesOf(b);
    for (let at = 0; at < ranges.length; at += 2) {
      const live = place(b.offset + ranges[at], b.offset + ranges[at + 1], "live");
      if (live) live.dataset.name = b.name;
    }
  }
  byId("from").textContent = Math.round(from);
  byId("to").textContent = Math.round(to) + " bytes";
}

function zoom(factor, centre) {
  const span = Math.min(Math.max((to - from) * factor, Math.min(64, data.slab_bytes)), data.slab_bytes);
  from = Math.max(0, Math.min(centre - (centre - from) * span / (to - from), data.slab_bytes - span));
  to = from + span;
  draw();
}

/* Rows of the list are made once; their bars and numbers follow the slider. */
const rows = present.map(b => {
  const row = make("tr", byId("buffers").tBodies[0]);
  row.dataset.name = b.name;
  make("td", row, b.name);
  const bar = make("span", make("td", row), undefined, "bar");
  make("i", bar, undefined, b.zero).style.width = "100%";
  make("td", row, b.bytes, "number");
  make("td", row, b.offset, "number");
  const cleared = make("td", row, "", "number");
  make("td", row, b.zero);
  make("code", make("td", row), b.formula);
  point(row, b);
  row.addEventListener("click", () => {
    const margin = b.extent / 4;
    from = Math.max(0, b.offset - margin);
    to = Math.min(Math.max(data.slab_bytes, 1), b.offset + b.extent + margin);
    draw();
  });
  return {b, bar, cleared};
});

function update() {
  let total = 0;
  for (const {b, bar, cleared} of rows) {
    const bytes = liveBytes(b), ranges = rangesOf(b);
    total += bytes;
    cleared.textContent = bytes;
    bar.querySelectorAll("b").forEach(old => old.remove());
    for (let at = 0; at < ranges.length; at += 2) {
      const live = make("b", bar);
      live.style.left = 100 * ranges[at] / b.extent + "%";
      live.style.width = 100 * (ranges[at + 1] - ranges[at]) / b.extent + "%";
    }
  }
  byId("count").textContent = data.tokens[slider.value];
  byId("pass").textContent = `A row pass clears ${total} bytes (${human(total)})`;
  draw();
}

byId("title").textContent = data.title;
byId("summary").textContent = `Slab ${data.slab_bytes} bytes (${human(data.slab_bytes)}), buffers ` +
  `${data.total_bytes} bytes; ${present.length} of ${data.buffers.length} take memory; hash ${data.hash}`;
for (const b of data.buffers.filter(each => each.bytes === 0)) {
  const row = make("tr", byId("absent").tBodies[0]);
  row.dataset.name = b.name;
  make("td", row, b.name);
  make("td", row, b.reason);
}
byId("absent-title").hidden = present.length === data.buffers.length;
slider.max = data.tokens.length - 1;
slider.value = data.chosen;
slider.addEventListener("input", update);
byId("in").addEventListener("click", () => zoom(1 / 2, (from + to) / 2));
byId("out").addEventListener("click", () => zoom(2, (from + to) / 2));
byId("fit").addEventListener("click", () => { from = 0; to = Math.max(data.slab_bytes, 1); draw(); });
const at = event => from + (event.clientX - map.getBoundingClientRect().left) / map.clientWidth * (to - from);
map.addEventListener("wheel", event => {
  event.preventDefault();
  zoom(event.deltaY < 0 ? 1 / 1.4 : 1.4, at(event));
}, {passive: false});
let held = null;
map.addEventListener("pointerdown", event => { held = at(event); });
addEventListener("pointermove", event => {
  if (held === null) return;
  const span = to - from;
  from = Math.max(0, Math.min(from + held - at(event), data.slab_bytes - span));
  to = from + span;
  draw();
});
addEventListener("pointerup", () => { held = null; });
addEventListener("resize", draw);
update();
</script>
</body>
</html>
)page";

} // namespace stowage::inline v0_1::detail
