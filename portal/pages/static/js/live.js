// Keeps the page true: one stream for all tabs of the browser tells of new commits. Dispatches `egs:changed` on the body,
// with what changed, and `egs:calendar` with deltas where a page asks for them (`<body>` within `[data-live-calendar]`).
//
// A worker shared by the tabs holds the stream; else the tab that has the lock holds it and passes everything on; else each
// tab has its own while it is visible, so that a browser's few connections to one host are never used up.

import { loggedOut, meta, prefix, shows, stale } from "./base.js";
import { Hub } from "./live-hub.js";

const URL_ = new URL(`${prefix}/api/v1/live`, location.href).href;
const NAME = `egs-live ${prefix} ${meta("egs-who")}`;
const wantsCalendar = document.querySelector("[data-live-calendar]") !== null;
let shown = `${meta("egs-status")}.${meta("egs-main")}`;
let held = null;

/** What is told while the page is hidden is passed on when it is shown. */
function changed(detail) {
  held = held ? { ...detail, ...merged(held, detail) } : detail;
  if (!document.hidden) pass();
}

function merged(one, other) {
  return {
    all: one.all || other.all,
    calendar: one.calendar || other.calendar,
    requests: [...new Set([...(one.requests ?? []), ...(other.requests ?? [])])],
    nodes: [...new Set([...(one.nodes ?? []), ...(other.nodes ?? [])])],
  };
}

function pass() {
  if (!held) return;
  const detail = held;
  held = null;
  document.body.dispatchEvent(new CustomEvent("egs:changed", { detail }));
}

document.addEventListener("visibilitychange", () => document.hidden || pass());

const ACTS = {
  commit(message) {
    const { status, main, age } = message;
    shows(status, age);
    if (`${status}.${main}` === shown) return;
    shown = `${status}.${main}`;
    changed(message);
  },
  beat: ({ status, age }) => shows(status, age),
  /** Where the stream stands that this tab has joined. */
  stands({ status, main, age, why }) {
    stale(why);
    ACTS.commit({ status, main, age, all: true, calendar: true, requests: [], nodes: [] });
  },
  calendar: (message) => document.body.dispatchEvent(new CustomEvent("egs:calendar", { detail: message })),
  stale: ({ why }) => stale(why),
  fresh: () => stale(""),
  out: () => loggedOut(),
};

const hear = (message) => ACTS[message.kind]?.(message);
const hello = () => ({ kind: "hello", url: URL_, has: shown, calendar: wantsCalendar });

function byWorker() {
  const worker = new SharedWorker(new URL("./live-worker.js", import.meta.url), { type: "module", name: NAME });
  worker.onerror = () => byLock();
  worker.port.onmessage = ({ data }) => hear(data);
  const join = () => worker.port.postMessage(hello());
  join();
  addEventListener("pagehide", () => worker.port.postMessage({ kind: "bye" }));
  addEventListener("pageshow", (event) => event.persisted && join());
}

function byLock() {
  if (!navigator.locks || !window.BroadcastChannel) return alone();
  const channel = new BroadcastChannel(NAME);
  let hub = null;
  channel.onmessage = ({ data }) => {
    if (data.kind === "hello") hub?.join(data.has, data.calendar);
    else if (data.kind === "elected") channel.postMessage(hello());
    else hear(data);
  };
  channel.postMessage(hello());
  navigator.locks.request(NAME, () => {
    hub = new Hub(URL_, (message) => {
      channel.postMessage(message);
      hear(message);
    });
    hub.join(shown, wantsCalendar);
    channel.postMessage({ kind: "elected" });
    return new Promise(() => {}); // held until the tab closes; then the next tab gets it
  });
}

function alone() {
  const hub = new Hub(URL_, hear);
  const look = () => (document.hidden ? hub.stream.stop() : hub.join(shown, wantsCalendar));
  look();
  document.addEventListener("visibilitychange", look);
}

if (meta("egs-who")) window.SharedWorker ? byWorker() : byLock();
