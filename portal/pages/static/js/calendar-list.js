// The requests that the calendar shows, as a list: names that have no room in their bars.

import { prefix } from "./base.js";
import { spokenAt } from "./calendar-layout.js";
import { html } from "./dom.js";

const KINDS = { lease: ["good", "running"], promise: ["wait", "promised"], planned: ["wait", "planned"] };
const MOST = 100;

/** Draw the list anew from the rows that are here. */
export function list(section, model) {
  const found = [...requestsOf(model).values()].sort((one, other) => one.begin - other.begin || (one.name < other.name ? -1 : 1));
  section.hidden = !found.length;
  section.querySelector("tbody").replaceChildren(...found.slice(0, MOST).map((one) => line(one, model)));
}

function requestsOf({ rows, span }) {
  const found = new Map();
  for (const row of rows.values()) {
    for (const bar of row.bars) {
      if (!bar.request || bar.begin >= span.to || (bar.until ?? Infinity) <= span.from) continue;
      const key = `${bar.kind} ${bar.request}`;
      const known = found.get(key) ?? { name: bar.request, kind: bar.kind, begin: bar.start ?? bar.begin, end: bar.end ?? bar.until, nodes: 0, where: new Set() };
      known.nodes += 1;
      known.where.add(`${row.cluster} / ${row.pool}`);
      found.set(key, known);
    }
  }
  return found;
}

function line(one, { hues, utc }) {
  const [tone, words] = KINDS[one.kind] ?? ["quiet", one.kind];
  const hue = hues[one.name.split("/")[0]];
  return html("tr", {},
    html("th", { scope: "row" }, hue === undefined ? null : html("span", { class: `swatch ws-${hue}`, "aria-hidden": "true" }),
      html("a", { class: "name", href: `${prefix}/requests/${one.name}` }, one.name)),
    html("td", { "data-label": "State" }, html("span", { class: `state ${tone}` }, words)),
    html("td", { "data-label": "Nodes", class: "num" }, String(one.nodes)),
    html("td", { "data-label": "From" }, spokenAt(one.begin, utc)),
    html("td", { "data-label": "Until" }, one.end === undefined ? "—" : spokenAt(one.end, utc)),
    html("td", { "data-label": "Where" }, [...one.where].join(", ")));
}
