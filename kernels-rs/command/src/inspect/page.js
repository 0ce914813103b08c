"use strict";
/* Draws the page from the JSON of an inspection. `model.lines` are the lines of Rust; every line of
   another form names its line of Rust by index (`at`). */
let model = JSON.parse(document.getElementById("model").textContent);
const byId = (id) => document.getElementById(id);
const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
const percent = (x) => x >= 0.995 ? "100" : x > 0 && x < 0.001 ? "<0.1" : (100 * x).toFixed(x < 0.1 ? 1 : 0);

const forms = [
  { id: "rust", title: "Rust", shown: true },
  { id: "lowered", title: "IR as lowered", shown: false },
  { id: "optimized", title: "IR optimized", shown: true },
  { id: "ptx", title: "PTX", shown: true },
  { id: "sass", title: "Machine code", shown: true },
];
let rows = {}; // By form: for each line of Rust, the elements that show it.
let pinned = null, hovered = null;

/* Code */

function rustRows() {
  let file = null, html = "";
  const most = Math.max(1e-9, ...model.lines.map((l) => l.share ?? 0));
  const live = Math.max(1, ...model.lines.map((l) => l.live));
  const stalled = model.lines.some((l) => l.stall), waits = Math.max(1e-9, ...model.lines.map((l) => l.stall?.share ?? 0));
  const machine = model.sass.length > 0, measured = model.lines.some((l) => l.share !== null);
  model.lines.forEach((line, i) => {
    const name = line.function && (line.file !== file || i > 0) ? `${line.file}: ${line.function}` : null;
    file = line.file;
    if (name) html += `<div class="row file" role="option" aria-selected="false" id="rust-f${i}">// ${escape(name)}</div>`;
    let gutters = `<span class="gutter">${line.number}</span>`;
    if (machine) {
      gutters += `<span class="gutter cost">${line.slots || ""}</span>`;
      gutters += `<span class="gutter heat" style="--heat-part:${line.live / live}">${line.live || ""}</span>`;
    }
    if (measured) {
      const share = line.share === null ? "" : `${percent(line.share)} %`;
      gutters += `<span class="bar-cell" style="--part:${(line.share ?? 0) / most}">${share}</span>`;
    }
    if (stalled) {
      const title = line.stall ? ` title="${escape(line.stall.reason)}"` : "";
      gutters += `<span class="bar-cell" style="--part:${(line.stall?.share ?? 0) / waits}"${title}>${line.stall ? `${percent(line.stall.share)} %` : ""}</span>`;
    }
    html += row("rust", i, i, gutters + colored(line.text, "rust"), null);
  });
  return html;
}

function row(form, i, at, inner, only) {
  const name = inner.replace(/<[^>]*>/g, "").trim() ? "" : ' aria-label="empty line"';
  const link = at === null || at === undefined ? "" : ` data-at="${at}"`;
  return `<div class="row${only ? " " + only : ""}" role="option" aria-selected="false" id="${form}-${i}"${link}${name}>${inner}</div>`;
}

const keywords = {
  rust: /\b(?:as|break|const|continue|else|enum|fn|for|if|impl|in|let|loop|match|mod|mut|pub|ref|return|struct|trait|type|unsafe|use|where|while|for)\b/,
  lowered: /\b(?:kernel|parameter|shared|local|if|else|for|loop|block|break|continue|yield|return|load|store|in|step)\b/,
  optimized: /\b(?:kernel|parameter|shared|local|if|else|for|loop|block|break|continue|yield|return|load|store|in|step)\b/,
  ptx: /(?:\.(?:reg|param|shared|visible|entry|version|target|address_size|maxntid|global|const)\b|\b[a-z][a-z0-9]*(?:\.[a-z0-9]+)+)/,
  sass: /(?<=^\s*[0-9a-f]{4} (?:\+ )?(?:@!?\w+ )?)[A-Z][A-Z0-9]*(?:\.[A-Z0-9_]+)*/,
};
function colored(text, form) {
  const comment = text.indexOf("//");
  const code = comment < 0 ? text : text.slice(0, comment);
  const number = /(?<![\w%$.])-?(?:0x[0-9a-f]+|0f[0-9A-F]{8}|\d[\d_]*(?:\.\d+)?)(?![\w])/;
  const parts = new RegExp(`(${keywords[form].source})|(${number.source})`, "g");
  let html = "", from = 0;
  for (const found of code.matchAll(parts)) {
    html += escape(code.slice(from, found.index)) + `<span class="${found[1] ? "k" : "n"}">${escape(found[0])}</span>`;
    from = found.index + found[0].length;
  }
  html += escape(code.slice(from));
  if (comment >= 0) html += `<span class="c">${escape(text.slice(comment))}</span>`;
  return `<span class="code">${html}</span>`;
}

function codeRows(form) {
  const live = form === "sass" ? Math.max(1, ...model.sass.map((l) => l.live ?? 0)) : 1;
  const sign = { this: "+", other: "−" };
  return model[form].map((line, i) => {
    let inner = model.comparison ? `<span class="gutter" style="width:1ch">${sign[line.only] ?? " "}</span>` : "";
    if (form === "sass") inner += `<span class="gutter heat" style="--heat-part:${(line.live ?? 0) / live}">${line.live ?? ""}</span>`;
    inner += colored(line.text, form);
    if (line.note) inner += `<span class="note">${escape(line.note)}</span>`;
    return row(form, i, line.at, inner, line.only);
  }).join("");
}

const heads = {
  rust: () => {
    let text = `<span class="gutter">line</span>`;
    if (model.sass.length > 0) text += `<span class="gutter cost">slots</span><span class="gutter">live</span>`;
    if (model.lines.some((l) => l.share !== null)) text += `<span class="bar-cell">executed</span>`;
    if (model.lines.some((l) => l.stall)) text += `<span class="bar-cell" title="estimate">waiting</span>`;
    return text;
  },
  sass: () => `<span class="gutter">live</span>address, instruction (+ shares a slot)`,
};

function available(form) {
  return form.id === "rust" || model[form.id].length > 0;
}

function drawCode() {
  const scrolled = Object.fromEntries(forms.map((f) => [f.id, byId(`list-${f.id}`)?.scrollTop ?? 0]));
  byId("toggles").innerHTML = forms.filter(available).map((f) =>
    `<button type="button" data-form="${f.id}" aria-pressed="${f.shown}">${f.title}</button>`).join("");
  byId("panes").innerHTML = forms.filter((f) => available(f) && f.shown).map((f) => {
    const body = f.id === "rust" ? rustRows() : codeRows(f.id);
    const count = f.id === "rust" ? model.lines.length : model[f.id].length;
    const head = heads[f.id] ? `<div class="heads" aria-hidden="true">${heads[f.id]()}</div>` : "";
    return `<div class="pane card"><h3>${f.title}<small>${count} lines</small></h3>${head}` +
      `<div class="list" role="listbox" tabindex="0" id="list-${f.id}" aria-label="${f.title}" data-form="${f.id}">${body}</div></div>`;
  }).join("");
  rows = {};
  for (const list of lists()) {
    const of = rows[list.dataset.form] = new Map();
    for (const element of list.querySelectorAll("[data-at]")) {
      const at = Number(element.dataset.at);
      if (!of.has(at)) of.set(at, []);
      of.get(at).push(element);
    }
    list.scrollTop = scrolled[list.dataset.form];
  }
  mark();
  markStep(false);
}

const lists = () => [...document.querySelectorAll("#panes .list")];

/* Marks: the lines that belong to one line of Rust */

function every(at, name, on) {
  if (at === null) return;
  for (const of of Object.values(rows)) for (const element of of.get(at) ?? []) {
    element.classList.toggle(name, on);
    if (name === "pin") element.setAttribute("aria-selected", String(on));
  }
}

function mark() {
  every(pinned, "pin", true);
  const at = hovered ?? pinned;
  if (at === null) return void (byId("status").textContent = "");
  const line = model.lines[at];
  const counts = Object.entries(rows).filter(([form]) => form !== "rust")
    .map(([form, of]) => `${(of.get(at) ?? []).length} of ${forms.find((f) => f.id === form).title}`);
  const costs = [];
  if (model.sass.length > 0) costs.push(`${line.slots} issue slots, ${line.live} live registers`);
  if (line.share !== null) costs.push(`${percent(line.share)} % of executed instructions, ${percent(line.active)} % of lanes active`);
  if (line.stall) costs.push(`an estimated ${percent(line.stall.share)} % of the waiting time, most of it for ${line.stall.reason}`);
  byId("status").textContent = `${line.file}:${line.number} ${line.text.trim()} — ${[...costs, counts.join(", ")].join("; ")}`;
}

function hover(at) {
  if (at === hovered) return;
  every(hovered, "hot", false);
  hovered = at;
  every(hovered, "hot", true);
  mark();
}

/* Keeps the marks of a line, and scrolls all forms except `from` to it. */
function pin(at, from) {
  every(pinned, "pin", false);
  pinned = at;
  mark();
  if (at === null) return;
  for (const [form, of] of Object.entries(rows)) if (form !== from) reveal(of.get(at)?.[0]);
}

function reveal(element) {
  if (!element) return;
  const list = element.parentElement;
  const top = element.offsetTop - list.scrollTop;
  if (top < 0 || top > list.clientHeight - 2 * element.offsetHeight) list.scrollTop = element.offsetTop - list.clientHeight / 3;
}

function activate(list, element) {
  if (!element) return;
  list.querySelector(".active")?.classList.remove("active");
  element.classList.add("active");
  list.setAttribute("aria-activedescendant", element.id);
  reveal(element);
  hover(element.dataset.at === undefined ? null : Number(element.dataset.at));
}

const active = (list) => list.querySelector(".active");

byId("panes").addEventListener("mouseover", (event) => {
  const element = event.target.closest(".row");
  hover(element?.dataset.at === undefined ? null : Number(element.dataset.at));
});
byId("panes").addEventListener("mouseleave", () => hover(null));
byId("panes").addEventListener("click", (event) => {
  const element = event.target.closest(".row");
  if (!element) return;
  const list = element.parentElement;
  activate(list, element);
  if (element.dataset.at !== undefined) pin(Number(element.dataset.at), list.dataset.form);
});
byId("panes").addEventListener("focusin", (event) => {
  const list = event.target.closest(".list");
  // A click focuses too, and must not scroll the line away from the mouse.
  if (list && !active(list) && list.matches(":focus-visible")) activate(list, rows[list.dataset.form].get(pinned)?.[0] ?? list.querySelector("[data-at]"));
});
byId("panes").addEventListener("focusout", () => hover(null));
byId("panes").addEventListener("keydown", (event) => {
  const list = event.target.closest(".list");
  if (!list || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 }[event.key];
  const at = active(list)?.dataset.at;
  if (step !== undefined) {
    const all = [...list.children];
    const next = all.indexOf(active(list)) + step;
    activate(list, all[Math.max(0, Math.min(all.length - 1, next))]);
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    const all = lists();
    const other = all[all.indexOf(list) + (event.key === "ArrowLeft" ? -1 : 1)];
    if (!other) return;
    const linked = at === undefined ? null : rows[other.dataset.form].get(Number(at))?.[0];
    activate(other, linked ?? active(other) ?? other.querySelector("[data-at]"));
    other.focus();
  } else if (event.key === "Enter" || event.key === " ") {
    if (at !== undefined) pin(Number(at), list.dataset.form);
  } else if (event.key === "Escape") {
    pin(null);
  } else return;
  event.preventDefault();
});
byId("toggles").addEventListener("click", (event) => {
  const id = event.target.dataset.form;
  if (!id) return;
  const form = forms.find((f) => f.id === id);
  form.shown = !form.shown;
  drawCode();
  document.querySelector(`#toggles [data-form=${id}]`).focus();
});
document.addEventListener("click", (event) => {
  const at = event.target.closest("[data-pin]")?.dataset.pin;
  if (at === undefined) return;
  pin(Number(at));
  byId("panes").scrollIntoView({ block: "nearest" });
});

/* Head */

function drawHead() {
  const { report, comparison, limits } = model;
  byId("instance").textContent = report.instance;
  const against = comparison ? `, compared with ${comparison.name}` : "";
  byId("about").textContent = `for ${report.target}${report.case ? `, case “${report.case}”` : ""}${against}`;
  byId("error").hidden = !model.error;
  byId("error").textContent = model.error ?? "";
  const limited = report.occupancy.limited_by.join(" and ");
  byId("sentence").textContent = limits ? limits.sentence :
    `Occupancy is ${report.occupancy.percent} %, limited by ${limited}.` +
    (report.case ? " What limits the time is computed for sm_61 only." : " A registered test case shows what limits the time.");
  const facts = comparison ? comparison.facts : model.facts.map(([name, value]) => [name, value, ""]);
  byId("facts").innerHTML = facts.map(([name, value, other]) =>
    `<div><dt>${escape(name)}</dt><dd>${escape(value)}</dd>${other ? `<dd class="other">other: ${escape(other)}</dd>` : ""}</div>`).join("");
  byId("advice").innerHTML = model.advice.map((advice) => {
    const share = advice.share > 0 ? ` <span class="hint">(${percent(advice.share)} % of the instructions)</span>` : "";
    const place = advice.at === null ? escape(advice.place) : `<button type="button" data-pin="${advice.at}">${escape(advice.place)}</button>`;
    return `<li>${place}${escape(advice.text)}${share}</li>`;
  }).join("") || "<li class='none'>Nothing: no access costs more than it must, and no operation is slow.</li>";
}

/* Pictures */

const svg = (width, height, title, inner) =>
  `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(title)}"><title>${escape(title)}</title>${inner}</svg>`;
const text = (x, y, content, more = "") => `<text x="${x}" y="${y}" ${more}>${escape(String(content))}</text>`;
const rect = (x, y, w, h, more) => `<rect x="${x}" y="${y}" width="${w}" height="${h}" ${more}/>`;
const figure = (title, caption, picture, more = "") =>
  `<figure class="card ${more}"><h3>${title}</h3>${picture}<figcaption>${caption}</figcaption></figure>`;
const hue = (n) => (n * 137.508) % 360;
const link = (access) => access.at === null ? escape(access.place) :
  `<button type="button" data-pin="${access.at}">${escape(access.place)}</button>`;

/* For each phase of a request and each bank, the words and the lanes that access each. */
function banks(access) {
  const wide = Math.max(4, access.bytes), atOnce = Math.max(1, Math.floor(128 / wide));
  const phases = [];
  access.request.lanes.forEach((offset, lane) => {
    if (offset === null) return;
    const phase = Math.floor(lane / atOnce);
    const of = phases[phase] ??= Array.from({ length: 32 }, () => []);
    for (let byte = offset - offset % 4; byte < offset + access.bytes; byte += 4) {
      const word = byte / 4, entries = of[word % 32];
      const known = access.merged ? entries.find((e) => e.word === word) : null;
      if (known) known.lanes.push(lane); else entries.push({ word, lanes: [lane] });
    }
  });
  return phases.filter((p) => p);
}

function bankPicture(access) {
  const size = 17, phases = banks(access);
  let y = 14, inner = "";
  for (let bank = 0; bank < 32; bank += 4) inner += text(34 + bank * size, 10, bank, 'class="small dim"');
  phases.forEach((phase, n) => {
    const ways = Math.max(...phase.map((e) => e.length));
    inner += text(0, y + 12, phases.length > 1 ? `pass ${n + 1}` : "lane", 'class="small dim"');
    for (let way = 0; way < ways; way++, y += size) phase.forEach((entries, bank) => {
      const entry = entries[way], x = 32 + bank * size;
      if (!entry) return void (inner += rect(x, y, size - 1, size - 1, 'class="idle" rx="2"'));
      const title = `bank ${bank}, word ${entry.word}: lane${entry.lanes.length > 1 ? "s" : ""} ${entry.lanes.join(", ")}`;
      inner += `<g><title>${title}</title>${rect(x, y, size - 1, size - 1, `class="${way ? "bad" : "good"}" rx="2"`)}` +
        text(x + 8, y + 11, entry.lanes.length > 1 ? `${entry.lanes[0]}+` : entry.lanes[0], 'class="small on" text-anchor="middle"') + "</g>";
    });
    y += 5;
  });
  const ways = Math.max(1, ...phases.flatMap((p) => p.map((e) => e.length)));
  const title = `Banks of ${access.name} at ${access.place}: ${ways === 1 ? "no bank conflict" : `${ways}-way bank conflict`}`;
  const others = ways === 1 ? "No bank serves more than one word." : `The busiest bank serves ${ways} words, one after another.`;
  return figure(`Banks: ${escape(access.name)}`, `${link(access)} ${access.bytes} bytes a lane, ${requests(access)}. Columns are banks, numbers are lanes.
    <span class="legend" style="background:var(--good)"></span>first word of a bank
    <span class="legend" style="background:var(--bad)"></span>conflict. ${others}`, svg(32 + 32 * size, y, title, inner));
}

const requests = (access) => access.measured === null ? "not executed" :
  `${access.requests} requests cost ${Number(access.measured.toFixed(2))} each`;

function sectorPicture(access) {
  const used = new Map(); // By word of 4 bytes, its first lane.
  access.request.lanes.forEach((offset, lane) => {
    if (offset === null) return;
    for (let byte = offset - offset % 4; byte < offset + access.bytes; byte += 4) if (!used.has(byte / 4)) used.set(byte / 4, lane);
  });
  const sectors = new Set([...used.keys()].map((w) => Math.floor(w / 8)));
  const lines = [...new Set([...sectors].map((s) => Math.floor(s / 4)))].sort((a, b) => a - b);
  const size = 14, shown = lines.slice(0, 16);
  let inner = "";
  shown.forEach((line, i) => {
    const y = 4 + i * (size + 4);
    inner += text(0, y + 10, line * 128, 'class="small dim"');
    for (let sector = 0; sector < 4; sector++) {
      const moved = sectors.has(4 * line + sector);
      for (let word = 0; word < 8; word++) {
        const lane = used.get(32 * line + 8 * sector + word), x = 46 + (8 * sector + word) * size + sector * 4;
        const fill = lane !== undefined ? 'class="good"' : moved ? 'class="bad" opacity=".55"' : 'class="idle"';
        inner += rect(x, y, size - 1, size - 1, `${fill} rx="1"`);
        if (lane !== undefined) inner += text(x + 6.5, y + 10, lane, 'class="small on" text-anchor="middle"');
      }
    }
  });
  const more = lines.length > shown.length ? ` ${lines.length - shown.length} more lines are not shown.` : "";
  const title = `Sectors of ${access.name} at ${access.place}: ${sectors.size} sectors of 32 bytes`;
  return figure(`Sectors: ${escape(access.name)}`, `${link(access)} ${access.bytes} bytes a lane, ${requests(access)}; a warp moves ${sectors.size} sectors
    and uses ${Math.round(100 * used.size / (8 * sectors.size))} % of them. A row is a line of 128 bytes, numbers are lanes.
    <span class="legend" style="background:var(--good)"></span>used <span class="legend" style="background:var(--bad);opacity:.55"></span>moved
    and not used.${more}`, svg(46 + 32 * size + 16, 6 + shown.length * (size + 4), title, inner));
}

function chart(points, current, xName, yMost, value) {
  const w = 420, h = 190, left = 34, bottom = 34, top = 8;
  const xMost = points[points.length - 1][0], xLeast = points[0][0];
  const x = (v) => left + (w - left - 10) * (v - xLeast) / (xMost - xLeast), y = (v) => top + (h - top - bottom) * (1 - v / yMost);
  let path = `M${x(points[0][0]).toFixed(1)},${y(points[0][1]).toFixed(1)}`;
  for (let i = 1; i < points.length; i++) path += `H${x(points[i][0]).toFixed(1)}V${y(points[i][1]).toFixed(1)}`;
  let inner = `<path class="axis" d="M${left},${top}V${h - bottom}H${w - 10}"/><path class="curve" d="${path}"/>`;
  for (const part of [0, 0.5, 1]) inner += text(left - 5, y(part * yMost) + 4, part * yMost, 'text-anchor="end" class="dim"') +
    text(x(xLeast + part * (xMost - xLeast)), h - bottom + 14, Math.round(xLeast + part * (xMost - xLeast)), `text-anchor="${["start", "middle", "end"][2 * part]}" class="dim"`);
  inner += text(w / 2, h - 2, xName, 'text-anchor="middle"');
  if (current !== null) inner += `<line class="markline" x1="${x(current)}" x2="${x(current)}" y1="${top}" y2="${h - bottom}"/>` +
    `<circle class="mark" cx="${x(current)}" cy="${y(value)}" r="5"/>` +
    text(Math.min(x(current) + 9, w - 100), Math.min(y(value) + 20, h - bottom - 6), `${current}: ${value} warps`);
  return svg(w, h, `Resident warps by ${xName}${current === null ? "" : `: ${value} of ${yMost} warps at ${current}`}`, inner);
}

function bars(entries, title, unit) {
  const most = Math.max(1, ...entries.map((e) => e.value)), h = 18;
  // Room for the longest name, at 7 units a character.
  const left = Math.max(128, ...entries.map((e) => 7 * e.name.length)), widest = 378 - left;
  const inner = entries.map((e, i) => {
    const y = i * h, w = widest * e.value / most;
    return text(left, y + 13, e.name, 'text-anchor="end"') + rect(left + 6, y + 3, Math.max(1, w), h - 6, `class="used" rx="2"`) +
      text(left + 12 + w, y + 13, e.label ?? e.value, 'class="dim"');
  }).join("");
  return svg(450, entries.length * h + 2, `${title}: ${entries.map((e) => `${e.name} ${e.label ?? e.value}${unit}`).join(", ")}`, inner);
}

function roofline(limits) {
  const w = 460, h = 230, left = 52, bottom = 34, top = 10;
  const ridge = limits.peak / limits.card.memory, at = Math.max(1 / 64, limits.intensity);
  const [x0, x1] = [-6, Math.max(10, Math.ceil(Math.log2(at)) + 1)];
  const y1 = Math.log10(limits.peak) + 0.2, y0 = Math.log10(limits.card.memory * 2 ** x0);
  const x = (v) => left + (w - left - 12) * (Math.log2(v) - x0) / (x1 - x0);
  const y = (v) => top + (h - top - bottom) * (y1 - Math.log10(v)) / (y1 - y0);
  const attainable = Math.min(limits.peak, at * limits.card.memory);
  let inner = `<path class="axis" d="M${left},${top}V${h - bottom}H${w - 12}"/>` +
    `<path class="curve" d="M${x(2 ** x0)},${y(limits.card.memory * 2 ** x0)}L${x(ridge)},${y(limits.peak)}H${x(2 ** x1)}"/>`;
  for (let e = x0; e <= x1; e += 2) inner += text(x(2 ** e), h - bottom + 14, e < 0 ? `1/${2 ** -e}` : 2 ** e, `text-anchor="${e === x1 ? "end" : "middle"}" class="dim"`);
  for (let e = Math.ceil(y0); e <= y1; e++) inner += text(left - 5, y(10 ** e) + 4, `${10 ** (e - 9)} G`, 'text-anchor="end" class="dim"');
  inner += text(w / 2, h - 3, "operations per byte of memory", 'text-anchor="middle"') +
    `<line class="markline" x1="${x(at)}" x2="${x(at)}" y1="${top}" y2="${h - bottom}"/><circle class="mark" cx="${x(at)}" cy="${y(attainable)}" r="5"/>`;
  const requested = limits.operations / Math.max(1, limits.requested);
  if (requested >= 2 ** x0) inner += `<circle cx="${x(requested)}" cy="${y(Math.min(limits.peak, requested * limits.card.memory))}" r="4" class="bad"/>`;
  const rate = (v) => v >= 1e12 ? `${(v / 1e12).toFixed(2)} T` : `${(v / 1e9).toFixed(1)} G`;
  return figure("Roofline", `${limits.operations} operations on floats, ${limits.bytes} bytes touched: at most ${rate(attainable)}operations/s of
    ${rate(limits.peak)} on a ${limits.card.name}. <span class="legend" style="background:var(--heat)"></span>each byte moved once
    <span class="legend" style="background:var(--bad)"></span>if no cache kept a sector (${limits.requested} bytes).`,
    svg(w, h, `Roofline: ${limits.intensity.toFixed(2)} operations per byte, at most ${rate(attainable)}operations per second`, inner));
}

function tilePicture(tiles) {
  const rowsOf = tiles.cells, w = rowsOf[0].length, h = rowsOf.length, cell = Math.max(4, Math.floor(440 / w));
  const [gx, gy] = tiles.grid, seen = new Set();
  let inner = "";
  rowsOf.forEach((cells, i) => cells.forEach((block, j) => {
    if (block === null) return void (inner += rect(j * cell, i * cell, cell, cell, 'class="idle"'));
    seen.add(block);
    const name = `block ${block % gx}, ${Math.floor(block / gx) % gy}, ${Math.floor(block / gx / gy)}`;
    inner += `<rect x="${j * cell}" y="${i * cell}" width="${cell}" height="${cell}" shape-rendering="crispEdges" style="fill:hsl(${hue(block)} 55% var(--cell))"><title>${name}</title></rect>`;
  }));
  return figure(`Grid's tiles: ${escape(tiles.array)}`, `${tiles.rows} × ${tiles.columns} elements by the block that stored each last: a color is a block.
    ${tiles.grid.join(" × ")} blocks; ${seen.size} of them are visible.`,
    svg(w * cell, h * cell, `Output ${tiles.array}, ${tiles.rows} by ${tiles.columns} elements, colored by ${seen.size} blocks`, inner));
}

function livePicture() {
  const code = model.sass.filter((l) => l.live !== undefined && l.only !== "other");
  if (code.length === 0) return "";
  const w = 1000, h = 90, most = Math.max(1, ...code.map((l) => l.live)), columns = Math.min(code.length, 500);
  let inner = "";
  for (let i = 0; i < columns; i++) {
    const [from, to] = [Math.floor(i * code.length / columns), Math.max(Math.floor((i + 1) * code.length / columns), Math.floor(i * code.length / columns) + 1)];
    const top = code.slice(from, to).reduce((a, b) => a.live >= b.live ? a : b), part = top.live / most;
    inner += `<rect x="${(i * w / columns).toFixed(2)}" y="${(h - part * (h - 12)).toFixed(1)}" width="${(w / columns + .3).toFixed(2)}" height="${(part * (h - 12)).toFixed(1)}"
      style="fill:color-mix(in oklab, var(--good), var(--heat) ${(100 * part).toFixed(0)}%)"${top.at === undefined ? "" : ` data-pin="${top.at}"`}><title>${escape(top.text)}: ${top.live} live</title></rect>`;
  }
  inner += text(2, 10, `${most} live`, 'class="dim"');
  const allocated = model.report.machine_code?.registers;
  return figure("Live registers", `In the order of the machine code; at most ${most}${allocated ? `, of ${allocated} allocated` : ""}. The hotter the color, the more.`,
    svg(w, h, `Live registers over the machine code, at most ${most}`, inner), "wide");
}

function lanesPicture() {
  const lines = model.lines.filter((l) => l.share > 0 && l.active !== null).sort((a, b) => b.share - a.share).slice(0, 24);
  if (lines.length === 0) return "";
  const h = 16;
  const inner = lines.map((l, i) => {
    const y = i * h, lanes = l.active * 32;
    let cells = "";
    for (let lane = 0; lane < 32; lane++) {
      const part = Math.max(0, Math.min(1, lanes - lane));
      cells += rect(116 + lane * 6, y + 3, 5, h - 6, 'class="idle"') + (part > 0 ? rect(116 + lane * 6, y + 3, (5 * part).toFixed(1), h - 6, 'class="used"') : "");
    }
    const name = `${l.file.split("/").pop()}:${l.number}`;
    return `<g data-pin="${model.lines.indexOf(l)}">${text(112, y + 12, name.length > 16 ? "…" + name.slice(-15) : name, 'text-anchor="end" class="dim"')}${cells}` +
      text(314, y + 12, `${lanes.toFixed(1)} lanes, ${percent(l.share)} %`) + "</g>";
  }).join("");
  return figure("Active lanes", "The mean number of active lanes of each line, and the line's share of executed instructions; the most executed lines first.",
    svg(440, lines.length * h + 2, `Active lanes of ${lines.length} lines`, inner));
}

function drawPictures() {
  const { report, limits, occupancy } = model, all = [];
  all.push(livePicture());
  for (const curve of occupancy.curves) all.push(figure(`Occupancy by ${curve.resource}`,
    `Resident warps of a multiprocessor, at most ${occupancy.of}; the other resources as they are.`,
    chart(curve.points, curve.current, curve.resource, occupancy.of, occupancy.warps)));
  if (limits) {
    all.push(roofline(limits));
    all.push(figure("Lower bounds of the time", `By unit, in µs on a ${limits.card.name}, counted by the interpreter in this case: a model, not a measurement.`,
      bars(limits.bounds.map((b) => ({ name: b.unit, value: b.microseconds, label: b.microseconds.toPrecision(3) })), "Lower bounds", " µs")));
  }
  if (model.estimate) all.push(figure("Where warps wait", `An estimate, not a measurement: ${model.estimate.microseconds.toPrecision(3)} µs on ${escape(model.estimate.device)},
    limited by ${escape(model.estimate.limiter)}. Shares of the waiting time of warps by reason.`,
    bars(model.estimate.reasons.filter(([, share]) => share >= 0.005).map(([name, share]) => ({ name, value: 100 * share, label: percent(share) })), "Where warps wait", " %")));
  all.push(lanesPicture());
  const mix = report.machine_code?.sass?.mix ?? report.instructions;
  all.push(figure("Instruction mix", report.machine_code?.sass ? "Instructions of the machine code by unit; one in a loop counts once." : "Instructions of the PTX; one in a loop counts once.",
    bars(Object.entries(mix).sort((a, b) => b[1] - a[1]).map(([name, value]) => ({ name, value })), "Instruction mix", "")));
  for (const tiles of model.tiles) all.push(tilePicture(tiles));
  for (const access of model.accesses) if (access.request) {
    if (access.memory === "shared") all.push(bankPicture(access));
    if (access.memory === "global") all.push(sectorPicture(access));
  }
  byId("pictures").innerHTML = all.join("");
}

/* One thread, step by step */

let step = 0;

function drawTrace() {
  const { execution } = model;
  byId("trace").hidden = !execution || execution.steps.length === 0;
  if (byId("trace").hidden) return;
  const more = execution.left_out > 0 ? ` The page leaves out ${execution.left_out} later steps; kernels trace prints them.` : "";
  byId("trace-about").textContent = `Thread ${execution.thread.join(", ")} of block ${execution.block.join(", ")} in case “${model.report.case}”, as the oracle runs the kernel
    as written; --case, --block and --thread select another.${more}`;
  byId("step").max = execution.steps.length - 1;
  goTo(Math.min(step, execution.steps.length - 1), false);
}

/* Shows step `n`, and scrolls the Rust source to its line if `follow`. */
function goTo(n, follow = true) {
  const { steps } = model.execution;
  step = Math.max(0, Math.min(steps.length - 1, n));
  const { at, set = [], events = [] } = steps[step];
  // The values before this step; stepping back needs no record of older values.
  const values = new Map();
  for (let i = 0; i <= step; i++) for (const [name, value] of steps[i].set ?? []) values.set(name, value);
  const changed = new Set(set.map(([name]) => name));
  const line = at === null ? null : model.lines[at];
  byId("step").value = step;
  byId("step").setAttribute("aria-valuetext", `step ${step + 1} of ${steps.length}${line ? `, line ${line.number}` : ""}`);
  byId("step-number").textContent = `${step + 1} of ${steps.length}`;
  byId("step-code").textContent = line ? `${line.file.split("/").pop()}:${line.number}  ${line.text.trim()}` : "code that is not on this page";
  byId("step-events").innerHTML = [...set.map(([name, value]) => `${name} = ${value}`), ...events].map((text) => `<li>${escape(text)}</li>`).join("");
  byId("variables").tBodies[0].innerHTML = [...values].map(([name, value]) =>
    `<tr${changed.has(name) ? ' class="changed"' : ""}><td>${escape(name)}</td><td>${escape(value)}</td></tr>`).join("");
  // Scrolls within its card only: `scrollIntoView` would also move the page.
  const row = byId("variables").querySelector(".changed"), card = byId("variables").parentElement;
  if (row) card.scrollTop = Math.max(0, row.offsetTop + row.offsetHeight - card.clientHeight);
  markStep(follow);
}

function markStep(follow) {
  document.querySelectorAll(".row.step").forEach((element) => element.classList.remove("step"));
  const at = model.execution?.steps[step]?.at ?? null;
  if (at === null) return;
  for (const [form, of] of Object.entries(rows)) for (const element of of.get(at) ?? []) {
    element.classList.add("step");
    if (follow && form === "rust") reveal(element);
  }
}

/* Returns the nearest step at the marked line, in a direction. */
function stepAtMark(direction) {
  const { steps } = model.execution;
  for (let i = step + direction; pinned !== null && i >= 0 && i < steps.length; i += direction) if (steps[i].at === pinned) return i;
  return step;
}

byId("step").addEventListener("input", () => goTo(Number(byId("step").value)));
byId("steps").addEventListener("click", (event) => {
  const to = {
    first: () => 0, back: () => step - 1, forward: () => step + 1, last: () => model.execution.steps.length - 1,
    "previous-here": () => stepAtMark(-1), "next-here": () => stepAtMark(1),
  }[event.target.dataset.step];
  if (to) goTo(to());
});

function drawFindings() {
  const { execution } = model;
  byId("findings").hidden = !execution;
  if (!execution) return;
  byId("finding-list").innerHTML = execution.findings.map((f) => {
    const place = f.at === null ? escape(f.place) : `<button type="button" data-pin="${f.at}">${escape(f.place)}</button>`;
    const hits = f.count > 1 ? ` <span class="hint">(${f.count} hits)</span>` : "";
    return `<li>${place}<span class="${f.severity}">${f.severity}[${f.check}]</span>: ${escape(f.message)}${hits}${f.help ? `<br><span class="hint">${escape(f.help)}</span>` : ""}</li>`;
  }).join("") || `<li class="none">Nothing in case “${escape(model.report.case ?? "")}”.</li>`;
}

/* The IR after each pass */

let shownPass = null;

/* Returns the lines after pass `n`, each with the sign of its change. */
function linesAfter(n) {
  let lines = model.lowered.filter((line) => line.only !== "other").map((line) => line.text), marked = null;
  for (let i = 0; i <= n; i++) {
    const { changes } = model.passes[i];
    if (changes === null) return null;
    if (changes.length === 0) { marked = lines.map((text) => ["", text]); continue; }
    let from = 0;
    marked = [];
    for (const change of changes) {
      if (typeof change === "string") marked.push(["+", change]);
      else if (change.to !== undefined) { marked.push(["", change.to]); from++; }
      else {
        const gone = Array.isArray(change), count = gone ? change[0] : change;
        for (const text of lines.slice(from, from + count)) marked.push([gone ? "−" : "", text]);
        from += count;
      }
    }
    lines = marked.filter(([sign]) => sign !== "−").map(([, text]) => text);
  }
  return marked;
}

const marks = (pass) => pass.changes === null || pass.changes.some((c) => typeof c === "string" || Array.isArray(c));

function drawPasses() {
  byId("passes").hidden = model.passes.length === 0;
  if (byId("passes").hidden) return;
  const changing = model.passes.map((pass, i) => pass.changes && marks(pass) ? i : -1).filter((i) => i >= 0);
  if (!changing.includes(shownPass)) shownPass = changing[0] ?? null;
  let html = "", equal = [];
  const endEqual = (next) => {
    if (equal.length > 0) html += `<li value="${next}">${equal.map(escape).join(", ")}: no change</li>`;
    equal = [];
  };
  model.passes.forEach((pass, i) => {
    if (!marks(pass)) return void equal.push(pass.name);
    endEqual(i);
    if (pass.changes === null) return void (html += `<li value="${i + 1}">${escape(pass.name)}: the page has no room for its changes</li>`);
    const added = pass.changes.filter((c) => typeof c === "string").length;
    const removed = pass.changes.reduce((sum, c) => sum + (Array.isArray(c) ? c[0] : 0), 0);
    html += `<li value="${i + 1}"><button type="button" data-pass="${i}" aria-pressed="${i === shownPass}">${escape(pass.name)} +${added} −${removed}</button></li>`;
  });
  endEqual(model.passes.length);
  byId("pass-list").innerHTML = html;
  const lines = shownPass === null ? [] : linesAfter(shownPass);
  byId("pass-code").innerHTML = lines.map(([sign, text]) =>
    `<div class="row${{ "+": " this", "−": " other" }[sign] ?? ""}"><span class="gutter" style="width:1ch">${sign}</span>${colored(text, "optimized")}</div>`).join("");
  const first = byId("pass-code").querySelector(".this, .other");
  if (first) byId("pass-code").scrollTop = first.offsetTop - 40;
}

byId("pass-list").addEventListener("click", (event) => {
  const pass = event.target.dataset.pass;
  if (pass === undefined) return;
  shownPass = Number(pass);
  drawPasses();
  byId("pass-list").querySelector(`[data-pass="${pass}"]`).focus();
});

function draw() {
  if (pinned !== null && pinned >= model.lines.length) pinned = null;
  hovered = null;
  drawHead();
  drawCode();
  drawTrace();
  drawFindings();
  drawPictures();
  drawPasses();
}
draw();

/* A served page polls its server for changes. */
if (document.documentElement.dataset.version) {
  let version = Number(document.documentElement.dataset.version);
  const ask = async () => {
    try {
      const changes = await (await fetch(`/changes?${version}`)).json();
      if (changes.version !== version) {
        version = changes.version;
        model = changes.model;
        draw();
        document.documentElement.dataset.version = version;
      }
    } catch {
      byId("status").textContent = "The server of this page has stopped.";
    }
    setTimeout(ask, 100);
  };
  ask();
}
