// On every page: what a reader chose (colours, times, workspace), ages and countdowns, the end of the session, copying.
// A page works without this script; it only makes it nicer.

const root = document.documentElement;
const YEAR_S = 31536000;
export const prefix = root.dataset.prefix;

export function meta(name) {
  return document.querySelector(`meta[name="${name}"]`)?.content ?? "";
}

/** Call `act` for every element that matches, now and after each part that htmx puts into the page. */
export function each(selector, act) {
  const run = (within) => within.querySelectorAll(selector).forEach(act);
  run(document);
  document.addEventListener("htmx:load", (event) => run(event.detail.elt));
}

// -- times: the server sends UTC --------------------------------------------------------------------------------------

const LOCAL = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const LOCAL_DAY = new Intl.DateTimeFormat(undefined, { weekday: "short", month: "short", day: "numeric" });

function localise(element) {
  const at = new Date(element.dateTime);
  element.textContent = (element.dataset.as === "day" ? LOCAL_DAY : LOCAL).format(at);
  element.title = at.toString();
}

if (root.dataset.times === "local") each("time[datetime]", localise);

/** A duration in its two largest units, as the server writes it. */
export function spoken(seconds) {
  const parts = [];
  let left = Math.max(0, Math.round(seconds));
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const amount = Math.floor(left / size);
    left -= amount * size;
    if (amount && parts.length < 2) parts.push(`${amount}${unit}`);
  }
  return parts.join(" ") || "0s";
}

/** A sentence of the API in the words of pages, as `said` of portal/pages/plain_words.py: a slice is a workspace. */
export const said = (text) =>
  text.replace(/(?<![\w./-])([Ss])lice(s?)(?![\w/-]|\.\w)/g, (_, first, many) => `${first === "S" ? "W" : "w"}orkspace${many}`);

const opened = performance.now();
/** Milliseconds by which the portal's clock is ahead of this machine's. */
const ahead = (Date.parse(meta("egs-now")) || Date.now()) - Date.now();

/** The time at the portal, in milliseconds since 1970. */
export const now = () => Date.now() + ahead;

function tick() {
  for (const element of document.querySelectorAll("[data-until]")) {
    const left = (Date.parse(element.dataset.until) - now()) / 1000;
    const text = left > 0 ? `in ${spoken(left > 3600 ? left - (left % 60) : left)}` : "now";
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of document.querySelectorAll("[data-age]")) {
    const since = Number(element.dataset.since ?? opened);
    element.textContent = `${spoken(Number(element.dataset.age) + (performance.now() - since) / 1000)} ago`;
  }
  warnOfEnd();
}

// -- the session: it ends, and what was typed stays ------------------------------------------------------------------

const WARN_MS = 5 * 60 * 1000;
const session = document.getElementById("session");

function warnOfEnd() {
  const ends = Date.parse(meta("egs-session-ends"));
  if (session && ends && ends - now() < WARN_MS) session.hidden = false;
}

/** Say that the session is over. Scripts ask nothing more until the reader logs in again. */
export function loggedOut() {
  if (!session) return;
  session.firstChild.textContent = "You are logged out. ";
  session.hidden = false;
  root.dataset.loggedOut = "";
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if ("loggedOut" in root.dataset) event.preventDefault();
});
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) loggedOut();
});

// -- the repository does not answer ----------------------------------------------------------------------------------

/** Show the page as old, with the sentence why; an empty one: the repository answers again. */
export function stale(why) {
  const bar = document.getElementById("stale");
  if (!bar) return;
  bar.hidden = !why;
  if (why) bar.textContent = `${why} Nothing can be changed until it answers again.`;
  root.toggleAttribute("data-stale", Boolean(why));
  for (const form of document.querySelectorAll('main form[method="post"]')) {
    for (const button of form.querySelectorAll("button")) button.disabled = Boolean(why);
  }
}

/** The commit that the page shows from now on. */
export function shows(status, age_s) {
  const place = document.getElementById("as-of");
  if (!place) return;
  place.querySelector("code").textContent = status.slice(0, 7);
  const age = place.querySelector("[data-age]");
  age.dataset.age = age_s;
  age.dataset.since = performance.now();
}

// -- what a reader chose ---------------------------------------------------------------------------------------------

function keep(name, value) {
  document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=${YEAR_S}; samesite=lax`;
}

for (const choice of document.querySelectorAll("[data-cookie]")) {
  choice.addEventListener("change", (event) => {
    keep(choice.dataset.cookie, event.target.value);
    if (choice.dataset.cookie === "egs-theme") root.dataset.theme = event.target.value;
    else location.reload();
  });
}
each("[data-submits]", (element) => element.addEventListener("change", () => element.form.requestSubmit()));

// -- what a live refresh leaves alone: what was opened, picked, or is being typed -------------------------------------

const morph = window.Idiomorph?.defaults;
if (morph) {
  morph.ignoreActiveValue = true;
  morph.callbacks = {
    ...morph.callbacks,
    beforeAttributeUpdated: (name, node) =>
      !(name === "open" && node.tagName === "DETAILS") && !(name === "checked" && node.type === "checkbox"),
  };
}

// -- small things ----------------------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (button) {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.textContent = "Copied";
  }
  for (const open of document.querySelectorAll("details.person[open], details.popup[open]")) {
    if (!open.contains(event.target)) open.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const open of document.querySelectorAll("details.person[open], details.popup[open], details.menu-toggle[open]")) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});
// A form is sent once, however often its button is clicked; its idempotency key makes a second sending harmless too.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || form.hasAttribute("hx-post")) return;
  const question = form.dataset.asks ?? event.submitter?.dataset.asks;
  if (question && !form.dataset.sent && !confirm(question)) {
    event.preventDefault();
    return;
  }
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

tick();
setInterval(tick, 1000);
