// Tests of the pages that `kernels inspect` writes and serves, in headless Chromium.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const { CHROMIUM, KERNELS, REPOSITORY } = process.env;
const folder = join(process.cwd(), "pages");
mkdirSync(folder, { recursive: true });
// The page has machine code only if NVIDIA's tools are installed.
const assembled = ["ptxas", "nvdisasm"].every((tool) =>
  [join(REPOSITORY, "target/tools"), ...process.env.PATH.split(":")].some((path) => existsSync(join(path, tool))));

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
});
after(() => browser.close());

/** Writes the page of an instance and returns its file. */
function inspect(name, ...more) {
  const file = join(folder, `${name.replace(/\W+/g, "_")}${more.length ? "_compared" : ""}.html`);
  execFileSync(KERNELS, ["inspect", name, "-o", file, ...more], { cwd: REPOSITORY });
  return file;
}

/** Opens a page; every message of its console fails the test. */
async function open(url, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1680, height: 1050 }, colorScheme: "light", ...options });
  page.messages = [];
  page.on("console", (message) => page.messages.push(message.text()));
  page.on("pageerror", (error) => page.messages.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith("file:") && !request.url().startsWith("data:") && !request.url().startsWith(url)) {
      page.messages.push(`the page requests ${request.url()}`);
    }
  });
  await page.goto(url);
  return page;
}

const address = (file) => pathToFileURL(file).href;
const forms = ["rust", "lowered", "optimized", "ptx", ...(assembled ? ["sass"] : [])];

/** Shows all forms of the code. */
async function showAll(page) {
  for (const button of await page.$$("#toggles [aria-pressed=false]")) {
    await page.click(`#toggles [data-form=${await button.getAttribute("data-form")}]`);
  }
}

/** Returns a line of Rust that all forms have, within a device function if `inlined`. */
const linked = (page, inlined) => page.evaluate(([forms, inlined]) => {
  const at = model.lines.map((_, i) => i).filter((i) => forms.every((form) =>
    form === "rust" || model[form].some((line) => line.at === i)));
  const first = model.lines.findIndex((line, i) => i > 0 && line.function);
  return at.find((i) => inlined ? i > first && first > 0 : i > 2) ?? null;
}, [forms, inlined]);

for (const [name, inlined] of [["matmul<T = 16>", false], ["softmax<ROWS = 4>", true]]) {
  test(`links of ${name} work in all directions`, async () => {
    const page = await open(address(inspect(name)));
    await showAll(page);
    const at = await linked(page, inlined);
    assert.notEqual(at, null, "a line that all forms have");
    for (const from of forms) {
      await page.evaluate(([from, at]) => rows[from].get(at)[0].scrollIntoView({ block: "center" }), [from, at]);
      await page.hover(`#list-${from} [data-at="${at}"]`);
      const hot = await page.$$eval(".row.hot", (rows) => rows.map((r) => [r.parentElement.dataset.form, Number(r.dataset.at)]));
      assert.deepEqual([...new Set(hot.map(([form]) => form))].sort(), [...forms].sort(), `from ${from}`);
      assert.ok(hot.every(([, line]) => line === at));
      await page.click(`#list-${from} [data-at="${at}"]`);
      for (const to of forms) {
        const seen = await page.$eval(`#list-${to} .pin`, (row) => {
          const [a, b] = [row.getBoundingClientRect(), row.parentElement.getBoundingClientRect()];
          return a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
        });
        assert.ok(seen, `a click in ${from} scrolls ${to} to the line`);
      }
      await page.mouse.move(5, 5);
      await page.keyboard.press("Escape");
    }
    assert.deepEqual(page.messages, []);
    await page.close();
  });
}

test("the keyboard alone suffices", async () => {
  const page = await open(address(inspect("matmul<T = 16>")));
  for (let i = 0; i < 20 && !(await page.evaluate(() => document.activeElement.id === "list-rust")); i++) await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "list-rust");
  const at = await linked(page, false);
  await page.keyboard.press("Home");
  for (let i = 0; i < 400; i++) {
    if (await page.evaluate((at) => active(document.activeElement).dataset.at === String(at), at)) break;
    await page.keyboard.press("ArrowDown");
  }
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute("#list-rust .pin", "aria-selected"), "true");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => active(document.activeElement).dataset.at), String(at), "the same line in the next form");
  assert.notEqual(await page.evaluate(() => document.activeElement.id), "list-rust");
  assert.match(await page.textContent("#status"), /\.rs:\d+ .*live registers|\.rs:\d+ /);
  await page.keyboard.press("Escape");
  assert.equal(await page.$(".pin"), null);
  // A form is hidden and shown again.
  await page.focus("#toggles [data-form=ptx]");
  await page.keyboard.press("Enter");
  assert.equal(await page.$("#list-ptx"), null);
  await page.keyboard.press("Enter");
  assert.ok(await page.$("#list-ptx"));
  assert.deepEqual(page.messages, []);
  await page.close();
});

test("a thread is followed forwards and backwards by the keyboard", async () => {
  const page = await open(address(inspect("matmul<T = 16>", "--case", "36 × 37", "--block", "1,1", "--thread", "3,2")));
  assert.match(await page.textContent("#trace-about"), /Thread 3, 2, 0 of block 1, 1, 0/);
  const shown = () => page.evaluate(() => [step, byId("step-code").textContent, byId("variables").tBodies[0].textContent]);
  await page.focus("#step");
  const seen = [await shown()];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("ArrowRight");
    seen.push(await shown());
  }
  assert.deepEqual(seen.map(([n]) => n), seen.map((_, i) => i));
  // The values are those of the last assignment at or before the step.
  const expected = await page.evaluate(() => {
    const values = new Map();
    for (const { set = [] } of model.execution.steps.slice(0, step + 1)) for (const [name, value] of set) values.set(name, value);
    return [...values].map((row) => row.join("")).join("");
  });
  assert.equal(seen.at(-1)[2], expected);
  assert.match(expected, /acc/);
  for (let i = 39; i >= 0; i--) {
    await page.keyboard.press("ArrowLeft");
    assert.deepEqual(await shown(), seen[i], "a step back restores the values");
  }
  // The line of the step is marked in the source, and the next step at a marked line is found.
  await page.focus("[data-step=last]");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => step), await page.evaluate(() => model.execution.steps.length - 1));
  const at = await page.evaluate(() => { goTo(0); const { at } = model.execution.steps.at(-2); pin(at); return at; });
  await page.focus("[data-step=next-here]");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => model.execution.steps[step].at), at);
  assert.equal(await page.$eval("#list-rust .step", (row) => Number(row.dataset.at)), at);
  assert.match(await page.textContent("#finding-list"), /Nothing in case/);
  assert.deepEqual(page.messages, []);
  await page.close();
});

test("the trace is that of `kernels trace`", async () => {
  const page = await open(address(inspect("softmax<ROWS = 4>", "--thread", "5")));
  const trace = JSON.parse(execFileSync(KERNELS, ["trace", "softmax<ROWS = 4>", "--thread", "5", "--lines", "100000", "--json"],
    { cwd: REPOSITORY, maxBuffer: 1e8 }));
  const steps = await page.evaluate(() => model.execution.steps.map((s) => [model.lines[s.at]?.number, s.set ?? []]));
  assert.equal(steps.length, trace.lines.length);
  trace.lines.forEach((line, i) => {
    const set = line.events.filter((e) => e.event === "assigned").map((e) => [e.name, e.value]);
    assert.deepEqual(steps[i], [line.line, set]);
  });
  await page.close();
});

test("passes rebuild the optimized IR", async () => {
  const page = await open(address(inspect("matmul<T = 16>")));
  const [after, optimized] = await page.evaluate(() => [
    linesAfter(model.passes.length - 1).filter(([sign]) => sign !== "−").map(([, text]) => text),
    model.optimized.map((line) => line.text)]);
  assert.deepEqual(after, optimized);
  const buttons = await page.$$("#pass-list button");
  assert.ok(buttons.length > 5);
  await buttons[1].focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.$$eval("#pass-list [aria-pressed=true]", (all) => all.length), 1);
  assert.ok((await page.$$("#pass-code .this")).length + (await page.$$("#pass-code .other")).length > 0);
  assert.match(await page.textContent("#pass-list"), /no change/);
  assert.deepEqual(page.messages, []);
  await page.close();
});

test("lines show where warps wait", { skip: !assembled }, async () => {
  const page = await open(address(inspect("matmul<T = 16>")));
  const stalls = await page.evaluate(() => model.lines.filter((l) => l.stall).map((l) => l.stall.share));
  assert.ok(stalls.length > 3);
  const sum = stalls.reduce((a, b) => a + b, 0);
  assert.ok(sum > 0.5 && sum < 1.001, `shares of the waiting time: ${sum}`);
  assert.match(await page.$eval("figure svg[aria-label^='Where warps wait']", (s) => s.getAttribute("aria-label")), /latency|memory|barrier/);
  await page.close();
});

test("pictures show what was measured", async () => {
  const page = await open(address(inspect("matmul<T = 16>")));
  const titles = await page.$$eval("figure h3", (all) => all.map((h) => h.textContent));
  const expected = ["Occupancy by threads of a block", "Occupancy by registers of a thread", "Occupancy by bytes of shared memory",
    "Roofline", "Lower bounds of the time", "Active lanes", "Instruction mix", "Grid's tiles: c", "Banks: load ta", "Banks: load tb",
    "Sectors: load a", "Sectors: load b", "Sectors: store c", ...(assembled ? ["Live registers"] : [])];
  for (const title of expected) assert.ok(titles.includes(title), `${title} in ${titles}`);
  const sizes = await page.$$eval("figure svg", (all) => all.map((s) => [s.getBoundingClientRect().height, s.querySelectorAll("rect, path, text").length]));
  assert.ok(sizes.every(([height, marks]) => height > 20 && marks > 1), String(sizes));
  // A warp reads 16 consecutive words of a row of `tb`: no conflict.
  assert.match(await page.$eval("figure svg[aria-label^='Banks of load tb']", (s) => s.getAttribute("aria-label")), /no bank conflict/);
  assert.deepEqual(page.messages, []);
  await page.close();
});

test("banks and sectors are those of the hardware", async () => {
  const page = await open(address(inspect("transpose_tiles@f16_vx8_vy8")));
  const ways = (bytes, stride, merged = true) => page.evaluate(([bytes, stride, merged]) => {
    const lanes = Array.from({ length: 32 }, (_, lane) => lane * stride);
    const phases = banks({ bytes, merged, request: { lanes } });
    return [phases.length, Math.max(...phases.flatMap((phase) => phase.map((entries) => entries.length)))];
  }, [bytes, stride, merged]);
  assert.deepEqual(await ways(4, 4), [1, 1]);
  assert.deepEqual(await ways(4, 8), [1, 2]);
  assert.deepEqual(await ways(4, 128), [1, 32]);
  assert.deepEqual(await ways(4, 132), [1, 1]);
  assert.deepEqual(await ways(4, 0), [1, 1], "one word for all lanes");
  assert.deepEqual(await ways(4, 0, false), [1, 32], "atomic operations on one word");
  assert.deepEqual(await ways(16, 16), [4, 1], "a quarter of a warp at once");
  // A picture has conflicts in color exactly where its text states one.
  const labels = await page.$$eval("figure svg[aria-label^='Banks']", (all) =>
    all.map((s) => [s.getAttribute("aria-label"), s.querySelectorAll(".bad").length]));
  assert.ok(labels.length >= 2);
  for (const [text, bad] of labels) assert.equal(/-way bank conflict/.test(text), bad > 0, text);
  assert.deepEqual(page.messages, []);
  await page.close();
});

for (const colorScheme of ["light", "dark"]) {
  test(`the ${colorScheme} page has no serious finding of axe-core`, async () => {
    const page = await open(address(inspect("softmax<ROWS = 4>")), { colorScheme });
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)[0]);
    assert.equal(back < 128, colorScheme === "dark");
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const serious = found.violations.filter((v) => ["serious", "critical"].includes(v.impact));
    assert.deepEqual(serious.map((v) => `${v.id}: ${v.help}: ${v.nodes[0].html}`), []);
    assert.deepEqual(page.messages, []);
    await page.close();
  });
}

test("the page of the 128 × 128 product is small and fast", async () => {
  const start = performance.now();
  const file = inspect("gemm@f32_128x128_v4");
  const page = await open(address(file));
  await page.waitForSelector("figure");
  const [seconds, megabytes] = [(performance.now() - start) / 1000, statSync(file).size / 1e6];
  console.log(`gemm@f32_128x128_v4: ${megabytes.toFixed(2)} MB, ${seconds.toFixed(1)} s to write and draw`);
  assert.ok(megabytes < 4, `${megabytes} MB`);
  assert.deepEqual(page.messages, []);
  await page.close();
});

test("a comparison marks the lines of each side", async () => {
  const page = await open(address(inspect("matmul<T = 16>", "--against", "matmul<T = 32>")));
  assert.match(await page.textContent("#about"), /compared with matmul<T = 32>/);
  const count = (side) => page.$$eval(`#list-ptx .${side}`, (rows) => rows.length);
  assert.ok(await count("this") > 0 && await count("other") > 0);
  assert.ok((await page.$$("#facts .other")).length > 0);
  assert.deepEqual(page.messages, []);
  await page.close();
});

test("a served page shows the oracle's findings", async () => {
  const source = join(folder, "elementwise.rs");
  const original = readFileSync(join(REPOSITORY, "kernels-rs/src/elementwise.rs"), "utf8");
  writeFileSync(source, original.replace("if i < y.len() {", "if i <= y.len() {"));
  const server = spawn(KERNELS, ["inspect", "saxpy", "--serve", "--source", source], { cwd: REPOSITORY });
  try {
    const url = await new Promise((resolve, reject) => {
      server.stdout.on("data", (data) => /http:\S+/.test(data) && resolve(/http:\S+/.exec(data)[0]));
      server.stderr.on("data", (data) => reject(new Error(String(data))));
    });
    const page = await open(url);
    await page.waitForFunction(() => model.execution?.findings.length > 0, null, { timeout: 20000 });
    assert.match(await page.textContent("#finding-list"), /error\[out-of-bounds\]: index 10007 is out of bounds of `[xy]`, which has 10007 elements/);
    await page.click("#finding-list button");
    assert.match(await page.textContent("#list-rust .pin"), /mul_add/);
    assert.deepEqual(page.messages, []);
    await page.close();
  } finally {
    server.kill();
  }
});

test("a served page follows the source", async () => {
  const source = join(folder, "textbook.rs");
  copyFileSync(join(REPOSITORY, "kernels-rs/src/rowwise/textbook.rs"), source);
  const server = spawn(KERNELS, ["inspect", "softmax<ROWS = 4>", "--serve", "--source", source], { cwd: REPOSITORY });
  try {
    const url = await new Promise((resolve, reject) => {
      server.stdout.on("data", (data) => /http:\S+/.test(data) && resolve(/http:\S+/.exec(data)[0]));
      server.stderr.on("data", (data) => reject(new Error(String(data))));
    });
    const page = await open(url);
    const edit = (text) => writeFileSync(source, text);
    const original = readFileSync(source, "utf8");
    const start = performance.now();
    edit(original.replace("let mut sum = 0.0;", "let mut sum = 7.5;"));
    await page.waitForFunction(() => model.ptx.some((line) => line.text.includes("7.5") || line.text.includes("40F00000")), null, { timeout: 20000 });
    console.log(`saved source to new PTX on the page: ${((performance.now() - start) / 1000).toFixed(2)} s`);
    // The next text is compiled while a thread examines the former, whose code comes too late.
    const next = performance.now();
    edit(original.replace("let mut sum = 0.0;", "let mut sum = 8.5;"));
    await page.waitForFunction(() => model.lines.some((line) => line.text.includes("sum = 8.5")), null, { timeout: 20000 });
    console.log(`saved again while the first is examined: ${((performance.now() - next) / 1000).toFixed(2)} s`);
    if (assembled) await page.waitForFunction(() => model.sass.length > 0, null, { timeout: 20000 });
    assert.ok(await page.evaluate(() => model.lines.some((line) => line.text.includes("sum = 8.5"))));
    // A mistake is shown with its place, and the code stays.
    edit(original.replace("let top = warp::max(top);", "let top = warp::max(tip);"));
    await page.waitForFunction(() => model.error !== null, null, { timeout: 20000 });
    assert.match(await page.textContent("#error"), /textbook\.rs:\d+:\d+: .*tip/);
    assert.ok(await page.evaluate(() => model.ptx.length) > 0);
    edit(original);
    await page.waitForFunction(() => model.error === null, null, { timeout: 20000 });
    assert.deepEqual(page.messages, []);
    await page.close();
  } finally {
    server.kill();
  }
});
