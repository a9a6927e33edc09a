// Draws the calendar: an axis, names, bars. Each layer is its own, because the headings of an SVG cannot stick.
// Only rows that are in view exist.

import { HEAD, ROW, between, isWeekend, placed, stacked, ticks, topOf, xOf } from "./calendar-layout.js";
import { nameOf, sentenceOf } from "./calendar-words.js";
import { html, svg } from "./dom.js";

const PAD = 4;
const SPARE_ROWS = 12;
/** Widths of a letter of the labels, in pixels. */
const LETTER = 6.6;
const BOLD = 7.5;
const AXIS = 34;

export class Drawing {
  #root;
  #model;
  #drawn = new Map();
  #heads = [];

  /** `model` has pools, rows by number, requests, span, utc, own, now. */
  constructor(root, model) {
    this.#root = root;
    this.#model = model;
    const find = (name) => root.querySelector(`.${name}`);
    this.axis = find("cal-ticks");
    this.names = find("cal-names");
    this.headLayer = find("cal-heads");
    this.chart = find("cal-bars");
    this.grid = find("cal-grid");
    this.rows = find("cal-rows");
    this.over = find("cal-over");
    this.body = find("cal-body");
  }

  /** Everything anew: another span, width, or other rows. */
  all() {
    const model = this.#model;
    model.span.width = Math.max(1, this.chart.clientWidth);
    model.stack = stacked(model.pools);
    this.body.style.height = `${model.stack.height}px`;
    this.chart.setAttribute("height", Math.max(1, model.stack.height));
    this.#axis();
    this.headings();
    for (const number of [...this.#drawn.keys()]) this.#remove(number);
    this.inView();
  }

  /** Rows that came into view; those that left it are removed. */
  inView() {
    const [first, last] = this.range();
    for (const number of [...this.#drawn.keys()]) if (number < first || number >= last) this.#remove(number);
    for (let number = first; number < last; number += 1) if (!this.#drawn.has(number)) this.#row(number);
  }

  /** Numbers of the rows to have: those in view, and some more. */
  range() {
    const top = this.#root.scrollTop;
    const [first, last] = between(this.#model.stack, top - SPARE_ROWS * ROW, top + this.#root.clientHeight + SPARE_ROWS * ROW);
    return [first, last];
  }

  /** These rows anew, as far as they are in view. What is in view is asked once: asking makes the browser lay out. */
  again(numbers) {
    const [first, last] = this.range();
    for (const number of numbers) {
      this.#remove(number);
      if (number >= first && number < last) this.#row(number);
    }
  }

  #row(number) {
    const row = this.#model.rows.get(number);
    const y = topOf(this.#model.stack, number);
    if (y < 0) return;
    const name = this.#name(row, number, y);
    const bars = this.#bars(row, number, y);
    this.names.append(name);
    this.rows.append(bars);
    this.#drawn.set(number, [name, bars]);
  }

  /** Where the keyboard is; -1: nowhere. */
  cursor(number) {
    for (const [drawn, [name, bars]] of this.#drawn) {
      name.classList.toggle("at", drawn === number);
      bars.classList.toggle("at", drawn === number);
    }
  }

  #remove(number) {
    for (const element of this.#drawn.get(number) ?? []) element.remove();
    this.#drawn.delete(number);
  }

  #name(row, number, y) {
    const name = html("div", { class: "cal-name", "data-row": number }, row?.node ?? "…");
    name.style.top = `${y}px`;
    if (!row) return name;
    name.title = row.state === "Ready" ? row.node : `${row.node}: ${row.state}`;
    name.classList.toggle("bad", row.state !== "Ready");
    name.classList.toggle("at", number === this.#model.cursor);
    return name;
  }

  #bars(row, number, y) {
    const { span, cursor } = this.#model;
    const band = svg("rect", { class: "band", x: 0, y: 0, width: span.width, height: ROW });
    const group = svg("g", { class: `row${number === cursor ? " at" : ""}`, transform: `translate(0 ${y})`, "data-row": number }, band);
    if (row) group.append(...row.bars.flatMap((bar, place) => this.#bar(bar, row, place) ?? []));
    return group;
  }

  #bar(bar, row, place) {
    const { span, requests, utc, own, workspaces, hues } = this.#model;
    const at = placed(span, bar);
    if (!at) return null;
    const isSeen = bar.request !== undefined;
    const isOwn = isSeen && (!own.size || own.has(bar.request.split("/")[0]));
    const request = isSeen ? requests[bar.request] : undefined;
    const hue = isSeen ? hues[bar.request.split("/")[0]] : undefined;
    const tint = hue === undefined ? (isOwn ? " own" : isSeen ? " seen" : "") : ` ws ws-${hue}`;
    const kind = `cal-bar ${bar.kind}${tint}`;
    const found = svg("g", { class: kind, "data-bar": place }, svg("title", {}, sentenceOf(bar, row, request, utc)));
    const box = { y: PAD, height: ROW - 2 * PAD, rx: 3 };
    if (at.use.width < at.width) found.append(svg("rect", { class: "hold", x: at.x, width: at.width, ...box }));
    found.append(svg("rect", { class: "use", x: at.use.x, width: at.use.width, ...box }));
    const letters = (at.use.width - 8) / (isOwn || hue !== undefined ? BOLD : LETTER);
    // Colour never says it alone: a bar without room for its name has the beginning of its workspace's.
    const label = shortened(labelOf(bar), letters, workspaces > 1) || (hue !== undefined && letters >= 2 ? bar.request.slice(0, 2) : "");
    if (label) found.append(svg("text", { x: at.use.x + 5, y: ROW / 2 + 4 }, label));
    return [this.#likely(request, bar), found];
  }

  /** From p10 to p90 as a shade under the bar. */
  #likely(request, bar) {
    const { span } = this.#model;
    if (!request?.likely || bar.kind === "lease") return [];
    const [early, late] = request.likely.map((at) => Math.min(Math.max(at, span.from), span.to));
    if (late <= early) return [];
    const x = xOf(span, early);
    return svg("rect", { class: "likely", x, y: ROW - PAD, width: Math.max(2, xOf(span, late) - x), height: 3 });
  }

  #axis() {
    const { span, utc, now } = this.#model;
    const marks = ticks(span, utc);
    this.axis.setAttribute("width", span.width);
    this.axis.replaceChildren(
      ...marks.map(({ x, label, isDay }) =>
        svg("text", { class: isDay ? "day" : "", x: x + 4, y: AXIS - 11 }, label)),
      ...(now >= span.from && now < span.to ? [svg("rect", { class: "now-mark", x: xOf(span, now) - 2, y: AXIS - 6, width: 4, height: 6 })] : []),
    );
    const height = this.#model.stack.height;
    const weekends = marks
      .filter(({ at }) => isWeekend(at, utc))
      .map(({ at, x }) => svg("rect", { class: "weekend", x, y: 0, height, width: Math.max(0, Math.min(span.width, xOf(span, at + (marks[1]?.at - marks[0]?.at || 86400))) - x) }));
    const lines = marks.map(({ x, isDay }) => svg("line", { class: isDay ? "day" : "", x1: x, x2: x, y1: 0, y2: height }));
    const past = now > span.from ? [svg("rect", { class: "past", x: 0, y: 0, width: Math.min(span.width, xOf(span, now)), height })] : [];
    const line = now >= span.from && now < span.to ? [svg("line", { class: "now", x1: xOf(span, now), x2: xOf(span, now), y1: 0, y2: height })] : [];
    this.grid.replaceChildren(...weekends, ...past, ...lines, ...line);
  }

  /** The time at the portal moved on. */
  moved() {
    this.#axis();
  }

  /** Headings anew: how many nodes are free. */
  headings() {
    for (const head of this.#heads) head.remove();
    this.#heads = this.#model.stack.heads.flatMap(({ pool, y, end }) => {
      const head = html("div", { class: `cal-head${pool.reachable ? "" : " stale"}` },
        html("strong", {}, `${pool.cluster} / ${pool.pool}`),
        html("span", { class: "note" }, `${pool.rows} × ${pool.gpusPerNode} ${pool.gpuShape}`),
        html("span", { class: pool.free && pool.reachable ? "free" : "note" }, freeIn(pool)),
        pool.reachable ? null : html("span", { class: "state bad" }, "does not answer"),
        pool.idle && pool.reachable ? this.#invitation(pool) : null);
      head.style.top = `${y}px`;
      if (pool.reachable) return [head];
      const hatch = html("div", { class: "cal-stale", "aria-hidden": "true" });
      hatch.style.top = `${y + HEAD}px`;
      hatch.style.height = `${end - y - HEAD}px`;
      return [head, hatch];
    });
    this.headLayer.append(...this.#heads);
  }

  #invitation(pool) {
    const { requestPath } = this.#model;
    const query = new URLSearchParams({ shape: pool.gpuShape, cluster: pool.cluster });
    return html("span", {}, `free ${this.#model.during}, `, html("a", { href: `${requestPath}?${query}` }, "request it"));
  }
}

const freeIn = ({ free, reachable }) => `${free || "none"} free ${reachable ? "now" : "when last seen"}`;
const labelOf = (bar) => (bar.request === undefined && !["maintenance", "out", "unreserved"].includes(bar.kind) ? "" : nameOf(bar));

/** The text as far as it fits; empty: not even its beginning does. */
function shortened(text, letters, hasWorkspace) {
  const fits = Math.floor(letters);
  if (text.length <= fits && hasWorkspace) return text;
  const last = text.includes("/") ? text.split("/")[1] : text;
  if (last.length <= fits) return last;
  return fits < 4 ? "" : `${last.slice(0, fits - 1)}…`;
}
