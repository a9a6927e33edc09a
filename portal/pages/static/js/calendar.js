// The calendar of nodes: fetches the rows in view, draws them, follows the live stream, and lets a reader ask and move by
// pointer and by keyboard. What it may know the server decides; this script shows all that it gets.

import { each, now, prefix } from "./base.js";
import { Dialogs } from "./calendar-dialogs.js";
import { Drawing } from "./calendar-draw.js";
import { ZOOMS, freeUntil, isFree, rowAt, snapped, timeAt, topOf, xOf } from "./calendar-layout.js";
import { sentenceOf } from "./calendar-words.js";
import { list } from "./calendar-list.js";
import { parts, svg } from "./dom.js";

const CHUNK = 50;
const NEAR_PX = 5;
const root = document.getElementById("calendar");
const given = JSON.parse(document.getElementById("calendar-data").textContent);
const told = document.getElementById("calendar-told");
const utc = document.documentElement.dataset.times !== "local";
const { step } = ZOOMS[given.zoom];
const SPAN_S = ZOOMS[given.zoom].hours * 3600;

const model = {
  id: "",
  pools: [],
  rows: new Map(),
  requests: {},
  span: { from: given.from, to: given.from + SPAN_S, width: 1 },
  stack: { heads: [], height: 0 },
  own: new Set(given.own),
  workspaces: given.workspaces,
  hues: given.hues,
  utc,
  now: now() / 1000,
  cursor: -1,
  during: given.during,
  requestPath: `${prefix}/requests/new`,
};
const places = new Map();
const asked = new Set();
const drawing = new Drawing(root, model);
const names = document.getElementById("calendar-list");
const dialogs = new Dialogs({ ...given, utc, prefix, model });
let fetching = new AbortController();

// -- data --------------------------------------------------------------------------------------------------------------

function take(data) {
  model.id = data.id;
  model.total = data.total;
  model.pools = data.pools;
  root.hidden = !data.total;
  Object.assign(model.requests, data.requests);
  data.rows.forEach((row, place) => {
    model.rows.set(data.first + place, row);
    places.set(keyOf(row), data.first + place);
  });
}

const keyOf = (row) => `${row.cluster}/${row.node}`;

function address(first, rows) {
  const query = new URLSearchParams({ ...given.filters, from: new Date(model.span.from * 1000).toISOString().replace(".000", ""), hours: SPAN_S / 3600, first, rows });
  const { at } = document.documentElement.dataset;
  if (at) query.set("at", at);
  return `${prefix}/api/v1/calendar?${query}`;
}

async function ask(first, rows) {
  const answer = await fetch(address(first, rows), { signal: fetching.signal, headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`calendar: ${answer.status}`);
  return (await answer.json()).data;
}

/** Rows in view that are not here yet, in chunks of a fixed size, so that scrolling asks for each once. */
async function fill() {
  const [first, last] = drawing.range();
  for (let chunk = Math.floor(first / CHUNK); chunk * CHUNK < last; chunk += 1) {
    const numbers = Array.from({ length: CHUNK }, (_, place) => chunk * CHUNK + place);
    const lacks = numbers.some((number) => number >= first && number < last && !model.rows.has(number));
    if (!lacks || asked.has(chunk)) continue;
    asked.add(chunk);
    try {
      const data = await ask(chunk * CHUNK, CHUNK);
      if (data.id !== model.id && model.id) return reload();
      take(data);
      drawing.again(numbers);
      list(names, model);
    } catch (error) {
      if (error.name !== "AbortError") console.debug(error.message);
    } finally {
      asked.delete(chunk);
    }
  }
}

/** Everything in view again: another time, or more has changed than a delta can say. What is shown stays until then. */
async function reload() {
  fetching.abort();
  fetching = new AbortController();
  asked.clear();
  const [first, last] = drawing.range();
  const from = Math.max(0, Math.floor(first / CHUNK) * CHUNK);
  try {
    const data = await ask(from, Math.min(200, Math.max(CHUNK, last - from)));
    for (const known of [model.rows, places]) known.clear();
    model.requests = {};
    take(data);
    drawing.all();
    list(names, model);
    await fill();
    document.body.dispatchEvent(new CustomEvent("egs:calendar-drawn"));
  } catch (error) {
    if (error.name !== "AbortError") console.debug(error.message);
  }
}

// -- live --------------------------------------------------------------------------------------------------------------

const PATCHES_KEPT = 100;
let patches = 0;

/** Requests that no row names are forgotten now and then, so that a page that stays open does not grow. */
function forget() {
  const named = new Set([...model.rows.values()].flatMap((row) => row.bars.map((bar) => bar.request)));
  for (const key of Object.keys(model.requests)) if (!named.has(key)) delete model.requests[key];
}

const isFiltered = Boolean(given.filters.sliceName || given.filters.free);

/** Draw the changed rows; nothing else moves. */
export function patch(delta) {
  if (delta.id === model.id) return;
  if (delta.all || isFiltered || delta.before !== model.id) return void reload();
  model.id = delta.id;
  Object.assign(model.requests, delta.requests);
  const free = new Map(delta.pools.map((pool) => [`${pool.cluster}/${pool.pool}`, pool.free]));
  const freed = model.pools.filter((pool) => (free.get(`${pool.cluster}/${pool.pool}`) ?? pool.free) !== pool.free);
  for (const pool of freed) pool.free = free.get(`${pool.cluster}/${pool.pool}`);
  const here = delta.rows.filter((row) => places.has(keyOf(row)));
  for (const row of here) model.rows.set(places.get(keyOf(row)), row);
  patches += 1;
  if (patches % PATCHES_KEPT === 0) forget();
  drawing.again(here.map((row) => places.get(keyOf(row))));
  if (here.length) list(names, model);
  const woken = model.pools.filter((pool) => pool.idle && delta.rows.some((row) => row.cluster === pool.cluster && row.pool === pool.pool && row.bars.length));
  for (const pool of woken) pool.idle = false;
  if (freed.length || woken.length) drawing.headings();
}

document.body.addEventListener("egs:calendar", ({ detail }) => {
  const began = performance.now();
  patch(detail);
  performance.measure("egs:patch", { start: began, detail: { rows: detail.rows.length } });
});
document.body.addEventListener("egs:changed", ({ detail }) => {
  if (detail.all) reload();
  freeLater();
});

// -- free nodes by time ----------------------------------------------------------------------------------------------

const LATER_MS = 2000;
let isAsked = false;

async function freeNow() {
  isAsked = false;
  const query = new URLSearchParams(location.search);
  query.set("zoom", given.zoom);
  query.set("from", new Date(model.span.from * 1000).toISOString().slice(0, 16) + "Z");
  for (const part of (await parts(`${prefix}/calendar/free?${query}`, "calendar-free", "when-free")) ?? []) document.getElementById(part.id)?.replaceWith(part);
}

/** After a commit: once for several, not while the page is out of sight, and not all readers at one moment. */
function freeLater() {
  if (isAsked) return;
  isAsked = true;
  if (document.hidden) document.addEventListener("visibilitychange", freeNow, { once: true });
  else setTimeout(freeNow, LATER_MS * (0.5 + Math.random()));
}

// -- time --------------------------------------------------------------------------------------------------------------

/** Show another time of the same length. The address says so, and going back comes back. */
function go(from) {
  model.span.from = from;
  model.span.to = from + SPAN_S;
  const url = new URL(location.href);
  url.searchParams.set("from", new Date(from * 1000).toISOString().slice(0, 16) + "Z");
  history.replaceState(null, "", url);
  drawing.all();
  reload();
  freeNow();
  say(`From ${new Date(from * 1000).toUTCString().slice(0, 22)}.`);
}

const today = () => snapped(now() / 1000 - SPAN_S / 28, step);

each("[data-pans]", (button) =>
  button.addEventListener("click", (event) => {
    event.preventDefault();
    const by = button.dataset.pans;
    go(by === "today" ? today() : model.span.from + Number(by) * SPAN_S);
  }));
each("[data-jumps]", (input) =>
  input.addEventListener("change", () => {
    const at = Date.parse(`${input.value}T00:00${utc ? "Z" : ""}`) / 1000;
    if (at) go(at);
  }));

// -- pointer -----------------------------------------------------------------------------------------------------------

function spot(event) {
  const box = drawing.chart.getBoundingClientRect();
  const x = event.clientX - box.left;
  const number = rowAt(model.stack, event.clientY - box.top);
  return { x, number, at: timeAt(model.span, x), row: model.rows.get(number) };
}

function barAt(event) {
  const group = event.target.closest("[data-bar]");
  const row = group && model.rows.get(Number(group.closest("[data-row]").dataset.row));
  return row ? { bar: row.bars[Number(group.dataset.bar)], row } : null;
}

const mayMove = (bar) => given.files && bar.request !== undefined && (bar.kind === "promise" || bar.kind === "planned")
  && (given.isAdmin || given.works.includes(bar.request.split("/")[0]));

let drag = null;

drawing.chart.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  const found = barAt(event);
  const from = spot(event);
  if (!found && (from.number < 0 || !from.row)) return;
  drag = { from, to: from, found, isMoved: false };
  if (event.pointerType !== "touch") drawing.chart.setPointerCapture(event.pointerId);
});
drawing.chart.addEventListener("pointermove", (event) => {
  if (!drag) return;
  drag.to = spot(event);
  drag.isMoved ||= Math.abs(drag.to.x - drag.from.x) > NEAR_PX || drag.to.number !== drag.from.number;
  if (drag.isMoved) show();
});
drawing.chart.addEventListener("pointerup", (event) => {
  if (!drag) return;
  const { found, isMoved } = drag;
  drag.to = isMoved ? spot(event) : drag.from;
  const done = drag;
  stop();
  if (found && (!isMoved || !mayMove(found.bar))) return dialogs.bar(found.bar, found.row, event, mayMove(found.bar));
  if (found) return dialogs.move(found.bar, shift(done, found.bar), overtaken(done));
  dialogs.ask(selected(done, isMoved), event);
});
drawing.chart.addEventListener("pointercancel", stop);
addEventListener("keydown", (event) => event.key === "Escape" && stop());

function stop() {
  drag = null;
  drawing.over.replaceChildren();
}

const shift = ({ from, to }, bar) => Math.max(snapped((bar.start ?? bar.begin) + to.at - from.at, step), Math.ceil(model.now / 60) * 60);

/** The waiting request on whose bar an admin drops one: it goes before that. */
function overtaken({ to, found }) {
  const under = given.isAdmin && to.row?.bars.find((bar) => bar.begin <= to.at && to.at < (bar.until ?? Infinity));
  return under && mayMove(under) && under.request !== found.bar.request ? under.request : "";
}

/** The free nodes and the time that a drag spans; a click spans one node until it is taken again, at most the usual length. */
function selected({ from, to }, isRange) {
  const [first, last] = [from.number, to.number < 0 ? from.number : to.number].sort((a, b) => a - b);
  const now_ = Math.ceil(model.now / 60) * 60;
  const begin = Math.max(now_, snapped(Math.min(from.at, to.at), step));
  const usual = begin + Math.max(4 * 3600, step);
  const end = isRange ? Math.max(begin + step, snapped(Math.max(from.at, to.at), step)) : Math.min(usual, freeUntil(from.row.bars, begin) ?? usual);
  const rows = [];
  for (let number = first; number <= last; number += 1) {
    const row = model.rows.get(number);
    if (row && row.cluster === from.row.cluster && row.pool === from.row.pool) rows.push(row);
  }
  const free = rows.filter((row) => row.state === "Ready" && isFree(row.bars, begin, end));
  const pool = model.pools.find((one) => one.cluster === from.row.cluster && one.pool === from.row.pool);
  return { pool, rows, free, begin, end };
}

/** What a drag means so far. */
function show() {
  const { from, to, found } = drag;
  if (found && mayMove(found.bar)) {
    const x = xOf(model.span, shift(drag, found.bar));
    const width = xOf(model.span, found.bar.until ?? model.span.to) - xOf(model.span, found.bar.begin);
    drawing.over.replaceChildren(svg("rect", { class: "ghost", x, y: topOf(model.stack, to.row ? to.number : from.number) + 2, width, height: 22, rx: 3 }));
  } else if (!found) {
    const { rows, free, begin, end } = selected(drag, true);
    const boxes = rows.map((row) => svg("rect", {
      class: free.includes(row) ? "pick" : "pick taken",
      x: xOf(model.span, begin), width: Math.max(2, xOf(model.span, end) - xOf(model.span, begin)),
      y: topOf(model.stack, places.get(keyOf(row))) + 2, height: 22, rx: 3,
    }));
    drawing.over.replaceChildren(...boxes);
  }
}

// -- keyboard ----------------------------------------------------------------------------------------------------------

function say(text) {
  told.textContent = text;
}

function put(number) {
  const last = (model.total ?? 0) - 1;
  if (last < 0) return;
  model.cursor = Math.min(Math.max(0, number), last);
  const y = topOf(model.stack, model.cursor);
  const axis = root.firstElementChild.offsetHeight;
  if (y < root.scrollTop + 10) root.scrollTop = y - 60;
  if (y > root.scrollTop + root.clientHeight - axis - 56) root.scrollTop = y - root.clientHeight + axis + 76;
  drawing.cursor(model.cursor);
  const row = model.rows.get(model.cursor);
  if (row) say([`${row.node}, ${row.cluster}.`, row.state === "Ready" ? "" : `${row.state}.`, ...row.bars.slice(0, 3).map((bar) => sentenceOf(bar, row, model.requests[bar.request], utc)), row.bars.length ? "" : "Nothing is planned."].filter(Boolean).join(" "));
}

const KEYS = {
  ArrowLeft: () => go(model.span.from - SPAN_S / 4),
  ArrowRight: () => go(model.span.from + SPAN_S / 4),
  PageUp: () => put(model.cursor - 15),
  PageDown: () => put(model.cursor + 15),
  ArrowUp: () => put(model.cursor - 1),
  ArrowDown: () => put(model.cursor + 1),
  Home: () => go(today()),
  Enter: () => model.rows.has(model.cursor) && dialogs.node(model.rows.get(model.cursor), mayMove),
  n: () => dialogs.ask(atCursor()),
  m: () => given.isAdmin && dialogs.maintain(atCursor()),
};

function atCursor() {
  const row = model.rows.get(Math.max(0, model.cursor)) ?? model.rows.values().next().value;
  const pool = model.pools.find((one) => one.cluster === row?.cluster && one.pool === row?.pool);
  const begin = Math.ceil(model.now / 3600) * 3600;
  return { pool, rows: row ? [row] : [], free: row ? [row] : [], begin, end: begin + 4 * 3600 };
}

root.addEventListener("keydown", (event) => {
  const act = event.target === root && !event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
document.querySelector("[data-maintains]")?.addEventListener("click", () => dialogs.maintain(atCursor()));
document.querySelector("[data-asks-quote]")?.addEventListener("click", () => dialogs.ask(atCursor()));

// -- scrolling, size, the clock, print -----------------------------------------------------------------------------------

let isDue = false;
root.addEventListener("scroll", () => {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    drawing.inView();
    fill();
  });
}, { passive: true });
new ResizeObserver(() => drawing.chart.clientWidth !== model.span.width && drawing.all()).observe(root);
setInterval(() => {
  model.now = now() / 1000;
  drawing.moved();
}, 30000);
const table = document.getElementById("calendar-table");
addEventListener("beforeprint", () => (table.open = true));

take(given.data);
if (!matchMedia("print").matches) table.open = false;
drawing.all();
list(names, model);
fill();
performance.mark("egs:drawn");
