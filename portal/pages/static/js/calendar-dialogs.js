// What a reader does in the calendar, as dialogs with fields: ask for nodes, move a waiting request, plan maintenance. A
// drag fills in the fields; by keyboard they are filled in by hand. Nothing is filed before its effect was shown.

import { said, spoken } from "./base.js";
import { asInput, exactSpan, fromInput, spokenAt } from "./calendar-layout.js";
import { sentenceOf } from "./calendar-words.js";
import { html, parts } from "./dom.js";

const JSON_HEADERS = { "Content-Type": "application/json", Accept: "application/json" };

export class Dialogs {
  #of;
  #at;
  #picked = {};

  /** `of`: prefix, utc, model, workspaces (those in which the reader may file), isAdmin. */
  constructor(of) {
    this.#of = of;
    this.#at = (seconds) => spokenAt(seconds, of.utc);
    for (const dialog of document.querySelectorAll("dialog.calendar-dialog")) {
      dialog.querySelector("[data-closes]")?.addEventListener("click", () => dialog.close());
    }
    this.#form("calendar-ask", (form) => this.#quote(form));
    this.#form("calendar-move", (form) => this.#tryMove(form));
    this.#form("calendar-maintain", (form) => this.#tryMaintenance(form));
    document.querySelector("[data-maintains-instead]")?.addEventListener("click", () => {
      document.getElementById("calendar-ask").close();
      this.maintain(this.#picked);
    });
  }

  #form(id, act) {
    const form = document.querySelector(`#${id} form`);
    if (!form) return;
    const effect = form.querySelector("[data-effect]");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      act(form);
    });
    // What was shown is of other values.
    form.addEventListener("input", () => effect.replaceChildren());
  }

  #open(id, values) {
    const dialog = document.getElementById(id);
    const form = dialog.querySelector("form");
    for (const [name, value] of Object.entries(values)) if (form.elements[name]) form.elements[name].value = value ?? "";
    form.querySelector("[data-effect]").replaceChildren();
    if (!dialog.open) dialog.showModal();
    return form;
  }

  // -- a bar, and a node --------------------------------------------------------------------------------------------------

  /** What a bar means, where to read on, and what can be done. */
  bar(bar, row, event, mayMove) {
    const { model, utc, prefix } = this.#of;
    const request = model.requests[bar.request];
    const dialog = document.getElementById("calendar-bar");
    const actions = [];
    if (bar.request) {
      actions.push(html("a", { class: "button primary", href: `${prefix}/requests/${bar.request}` }, "Open and see why"));
      if (mayMove) actions.push(html("button", { type: "button", onclick: () => { dialog.close(); this.move(bar); } }, "Move …"));
    }
    actions.push(html("button", { type: "button", onclick: () => dialog.close() }, "Close"));
    dialog.replaceChildren(
      html("h2", {}, row.node),
      html("p", {}, sentenceOf(bar, row, request, utc)),
      request ? html("p", { class: "note" }, factsOf(request)) : null,
      html("div", { class: "actions" }, actions),
    );
    dialog.showModal();
  }

  /** Everything about a row: the keyboard's way to each bar. */
  node(row, mayMove) {
    const { model, utc, prefix } = this.#of;
    const dialog = document.getElementById("calendar-bar");
    const line = (bar) => html("li", {},
      sentenceOf(bar, row, model.requests[bar.request], utc), " ",
      bar.request ? html("a", { href: `${prefix}/requests/${bar.request}` }, "Open") : null, " ",
      mayMove(bar) ? html("button", { type: "button", class: "small", onclick: () => { dialog.close(); this.move(bar); } }, "Move …") : null);
    const pool = model.pools.find((one) => one.cluster === row.cluster && one.pool === row.pool);
    const begin = Math.ceil(model.now / 3600) * 3600;
    const spot = { pool, rows: [row], free: [row], begin, end: begin + 4 * 3600 };
    dialog.replaceChildren(
      html("h2", {}, `${row.node} in ${row.cluster} / ${row.pool}`),
      row.bars.length ? html("ul", { class: "plain-list" }, row.bars.map(line)) : html("p", {}, "Nothing has it, and nothing is planned."),
      html("div", { class: "actions" },
        html("button", { type: "button", class: "primary", onclick: () => { dialog.close(); this.ask(spot); } }, "Ask for nodes"),
        html("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    );
    dialog.showModal();
  }

  // -- ask ------------------------------------------------------------------------------------------------------------------

  /** `spot` has the pool, its free nodes and the time that were picked. */
  ask(picked) {
    const { pool, free, rows, begin, end } = picked;
    if (!pool) return;
    this.#picked = picked;
    const form = this.#open("calendar-ask", {
      nodes: Math.max(1, free.length),
      shape: pool.gpuShape,
      cluster: pool.cluster,
      notBefore: asInput(begin, this.#of.utc),
      duration: exactSpan(end - begin),
    });
    const note = form.querySelector("[data-picked]");
    note.textContent = free.length < rows.length ? `${free.length} of the ${rows.length} nodes are free all this time.` : "";
    if (chosen(form.elements.workspace, pool.cluster)) this.#quote(form);
  }

  /** The answer of the form for a new request: starts, price, and whom it delays. */
  async #quote(form) {
    const effect = form.querySelector("[data-effect]");
    const { workspace, nodes, shape, cluster, notBefore, duration, priority } = form.elements;
    const pool = this.#of.model.pools.find((one) => one.gpuShape === shape.value);
    const at = fromInput(notBefore.value, this.#of.utc);
    const asked = new URLSearchParams({
      slice: workspace.value, nodes: nodes.value, gpus: pool?.gpusPerNode ?? 8, shape: shape.value, cluster: cluster.value,
      duration: duration.value, priority: priority.value,
      notBefore: at > this.#of.model.now ? new Date(at * 1000).toISOString().replace(".000", "") : "",
    });
    effect.replaceChildren(html("p", { class: "note", role: "status" }, "Working it out …"));
    const quote = await parts(`${this.#of.prefix}/calendar/quote?${asked}`, "quote");
    effect.replaceChildren(...(quote ?? []), quote ? "" : html("div", { class: "notice warn", role: "alert" }, "The portal does not answer; try again."));
  }

  // -- move -----------------------------------------------------------------------------------------------------------------

  /** `start`: when it was dragged to; absent: as it is. `before`: the request that it was dropped on, if any. */
  move(bar, start, before = "") {
    const request = this.#of.model.requests[bar.request];
    const form = this.#open("calendar-move", {
      request: bar.request,
      notBefore: start === undefined ? "" : asInput(start, this.#of.utc),
      priority: request.priority,
      cluster: "",
      order: before,
    });
    const now = bar.start ?? bar.begin;
    form.dataset.priority = request.priority;
    form.dataset.key = "";
    form.querySelector("[data-now]").textContent = `It is to start ${this.#at(now)}.`;
    const isEarlier = start !== undefined && start < now;
    form.querySelector("[data-advice]").textContent = isEarlier
      ? "An earlier start needs a higher priority, or free nodes in another cluster; see below whom it delays." : "";
    if (before) {
      form.elements.notBefore.value = "";
    } else if (start === undefined || isEarlier) {
      if (isEarlier) form.elements.notBefore.value = "";
      form.elements.priority.focus();
      return;
    }
    this.#tryMove(form);
  }

  #edit(form) {
    const { request, notBefore, priority, cluster } = form.elements;
    const at = fromInput(notBefore.value, this.#of.utc);
    return {
      gprId: request.value,
      ...(at && { notBefore: new Date(at * 1000).toISOString().replace(".000", "") }),
      ...(priority.value !== form.dataset.priority && { priority: Number(priority.value) }),
      ...(cluster.value && { clusterName: cluster.value }),
    };
  }

  #tryMove(form) {
    const edit = this.#edit(form);
    const order = form.elements.order?.value.trim();
    if (order && Object.keys(edit).length > 1) return this.#say(form, "Change the order, or time, priority and cluster; not both at once.");
    if (order) {
      const moving = { gprId: edit.gprId, ...(order === "first" || order === "last" ? { to: order } : { before: order }) };
      return this.#effectOf(form, { do: "move", ...moving }, "File this move", ["POST", "/api/v1/queue/move", moving]);
    }
    if (Object.keys(edit).length === 1) return this.#say(form, "Change the time, the priority or the cluster first.");
    return this.#effectOf(form, { do: "edit", ...edit }, "File this move", ["PUT", "/api/v1/gpr", edit]);
  }

  // -- maintenance ----------------------------------------------------------------------------------------------------------

  maintain({ pool, rows, begin, end }) {
    if (!pool) return;
    this.#open("calendar-maintain", {
      cluster: pool.cluster,
      nodes: rows.map((row) => row.node).join(" "),
      begin: asInput(begin, this.#of.utc),
      end: asInput(end, this.#of.utc),
    });
  }

  #tryMaintenance(form) {
    const { cluster, nodes, begin, end, reason } = form.elements;
    const instant = (input) => new Date(fromInput(input.value, this.#of.utc) * 1000).toISOString().replace(".000", "");
    const window_ = { clusterName: cluster.value, begin: instant(begin), end: instant(end), nodes: nodes.value.split(/[\s,]+/).filter(Boolean) };
    const filed = { ...window_, ...(reason.value && { reason: reason.value }) };
    return this.#effectOf(form, { do: "maintenance", ...window_ }, "Plan this maintenance", ["POST", "/api/v1/inventory/maintenance", filed]);
  }

  // -- first the effect, then the change ----------------------------------------------------------------------------------

  /** Ask what the change would do, show whom it delays, and offer to file it. */
  async #effectOf(form, change, text, [method, path, body]) {
    const effect = form.querySelector("[data-effect]");
    const told = await this.#told(effect, "/api/v1/whatif", { method: "POST", body: JSON.stringify({ changes: [change] }) });
    if (!told) return;
    const found = told.data;
    const key = crypto.randomUUID?.() ?? String(Math.random()).slice(2); // one for both clicks of a double click
    const file = html("button", { type: "button", class: "primary", disabled: found.verdict === "refused", onclick: async () => {
      file.disabled = true;
      const done = await this.#told(effect, path, { method, body: JSON.stringify(body), headers: { "Idempotency-Key": key } });
      if (done) effect.replaceChildren(landed(done.data.change));
    } }, text);
    effect.replaceChildren(this.#effect(found), html("div", { class: "actions" }, file));
  }

  #effect(found) {
    const time = (text) => (text ? this.#at(Date.parse(text) / 1000) : "no start");
    const own = found.requests.map((one) => html("li", {}, html("strong", {}, `${one.slice}/${one.name}`), `: ${time(one.startBefore)} → ${time(one.estimatedStartTime)}`,
      one.needsApproval ? html("span", { class: "state ask" }, "needs approval") : null));
    const moved = found.moved.map((one) => html("li", { class: one.change === "later" ? "later" : "" },
      html("strong", {}, `${one.slice}/${one.name}`), ` ${changed(one)}: ${time(one.was)} → ${time(one.now)}`, one.why ? html("span", { class: "note" }, ` ${said(one.why)}`) : null));
    const pushed = found.preempted.map((one) => html("li", { class: "later" }, html("strong", {}, `${one.slice}/${one.name}`), ` gives up its nodes at ${time(one.at)}`));
    const wrong = [...found.problems.filter((one) => one.severity === "error"), ...found.denials, ...found.limits].map((one) => html("li", {}, said(one.message)));
    const others = hiddenOf(found.hidden);
    const isAlone = !moved.length && !pushed.length && !others;
    return html("div", { class: "effect", role: "status" },
      wrong.length ? html("div", { class: "notice bad" }, html("ul", { class: "plain-list" }, wrong)) : null,
      html("ul", { class: "plain-list" }, own),
      html("h3", {}, isAlone ? "It delays no other request." : "It moves others"),
      isAlone ? null : html("ul", { class: "plain-list" }, moved, pushed, found.moreMoved ? html("li", {}, `and ${found.moreMoved} more`) : null, others ? html("li", { class: "later" }, others) : null));
  }

  // -- asking the server --------------------------------------------------------------------------------------------------

  async #told(place, path, options) {
    place.replaceChildren(html("p", { class: "note", role: "status" }, "Working it out …"));
    try {
      const answer = await fetch(this.#of.prefix + path, { ...options, headers: { ...JSON_HEADERS, ...options.headers } });
      const body = await answer.json();
      if (answer.ok) return body;
      place.replaceChildren(html("div", { class: "notice bad", role: "alert", title: body.error?.errorKey ?? String(answer.status) }, said(body.message)));
    } catch {
      place.replaceChildren(html("div", { class: "notice warn", role: "alert" }, "The portal does not answer; whether anything changed is unknown. Look at the request before you try again."));
    }
    return null;
  }

  #say(form, text) {
    form.querySelector("[data-effect]").replaceChildren(html("p", { class: "note", role: "status" }, text));
  }
}

/** Choose a workspace that may use the cluster, the present one first; false: none may. */
function chosen(select, cluster) {
  const may = (option) => option?.dataset.clusters.split(" ").includes(cluster);
  const found = [select.selectedOptions[0], ...select.options].find(may);
  if (found) select.value = found.value;
  return Boolean(found);
}

function factsOf(request) {
  const place = request.rank ? `, number ${request.rank} in the queue` : "";
  return `${request.nodes === 1 ? "1 node" : `${request.nodes} nodes`}, priority ${request.priority}, ${request.phase}${place}. ${said(request.message ?? "")}`;
}

function changed(one) {
  if (one.change === "later" || one.change === "earlier") return `${one.change}${one.minutes ? ` by ${spoken(Math.abs(one.minutes) * 60)}` : ""}`;
  return { refused: "loses its start", gone: "is gone", new: "gets a start" }[one.change];
}

/** Of other workspaces only numbers are known. */
function hiddenOf(hidden) {
  const parts = [];
  const of = (count) => `${count} ${count === 1 ? "request" : "requests"} of other workspaces`;
  if (hidden.later) parts.push(`${of(hidden.later)} ${hidden.later === 1 ? "starts" : "start"} later${hidden.mostMinutes ? `, by up to ${spoken(hidden.mostMinutes * 60)}` : ""}`);
  if (hidden.earlier) parts.push(`${of(hidden.earlier)} earlier`);
  if (hidden.withoutStart) parts.push(`${of(hidden.withoutStart)} without a start`);
  if (hidden.preempted) parts.push(`${of(hidden.preempted)} must make room`);
  return parts.join("; ");
}

/** Where a change is now. */
function landed(change) {
  const text = {
    pushed: "It is filed. The calendar follows with the controller's next cycle.",
    "pull-request": "It is a pull request now; it counts when that is merged.",
    branch: "It is on a branch now; it counts when that is merged.",
    accepted: "It is accepted, and will be pushed soon.",
  }[change.way];
  return html("div", { class: "notice good", role: "status" }, text, change.commit ? html("code", {}, ` ${change.commit.slice(0, 7)}`) : null,
    change.url ? html("a", { href: change.url }, " Look at it") : null);
}
