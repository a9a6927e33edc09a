// What a bar of the calendar means, in a sentence. Others' requests have no name here, because the page never gets one.

import { said } from "./base.js";
import { spokenAt } from "./calendar-layout.js";

export const HIDDEN = "another workspace's request";

export function nameOf(bar) {
  if (bar.kind === "maintenance") return "Maintenance";
  if (bar.kind === "out") return "Out of service";
  if (bar.kind === "unreserved") return "Not reserved";
  return bar.request ?? HIDDEN;
}

const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

/** `row` is its node; `request` is what is known of the request, if the reader may see it. */
export function sentenceOf(bar, row, request, utc) {
  // A name stays as it is written.
  const name = bar.request ?? capital(nameOf(bar));
  const at = (instant) => spokenAt(instant, utc);
  const until = bar.until === undefined ? "" : ` until ${at(bar.end ?? bar.until)}`;
  if (bar.kind === "maintenance") return `${name} from ${at(bar.begin)}${until}.`;
  if (bar.kind === "unreserved") return `Not reserved${until}: the node does not exist then.`;
  if (bar.kind === "out") return `${row.state} since ${at(bar.begin)}${row.message ? `: ${said(row.message)}` : "."}`;
  if (bar.kind === "lease") return `${name} has this node${until}${cleaned(bar, at)}.`;
  const start = at(bar.start ?? bar.begin);
  const kind = bar.kind === "promise" ? "starts" : "is planned to start";
  return `${name} ${kind} ${start}, and has this node${until}${cleaned(bar, at)}.${waiting(request, at)}${likely(request, at)}`;
}

function cleaned(bar, at) {
  return bar.end === undefined || bar.until === undefined ? "" : ` (clean at ${at(bar.until)})`;
}

function waiting(request, at) {
  if (!request?.waitsFor) return "";
  const told = request.waitsFor.map((one) => `${nameOf(one)} (until ${at(one.until)})`);
  return ` It waits for ${[...new Set(told)].join(" and ")}.`;
}

function likely(request, at) {
  if (!request?.likely) return "";
  const [early, late] = request.likely;
  return ` It will likely start between ${at(early)} and ${at(late)}.`;
}
