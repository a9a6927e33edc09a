// The connection to `/api/v1/live`: reads its events, comes back after a break, and stops for good when the login ends.
// Runs in a worker or in a page; knows neither.

const LONGEST_WAIT_MS = 15000;
/** The server says something at least every 15 s. */
const SILENT_MS = 45000;
/** Failed attempts after which the page is shown as old. */
const PATIENCE = 3;
const AWAY = "The portal does not answer.";

/** Events from text as it arrives, as in the HTML standard but for `retry` and carriage returns, which we do not send. */
export class Parser {
  #rest = "";

  *feed(text) {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop();
    for (const block of blocks) {
      const found = { id: "", event: "message", data: "" };
      for (const line of block.split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) found[line.slice(0, at)] = line.slice(at + 2);
      }
      if (found.data) yield found;
    }
  }
}

export class LiveStream {
  #url;
  #tell;
  #abort = null;
  #timer = null;
  #failures = 0;
  #isRunning = false;

  /** `tell(message)` gets `{kind, ...}`: commit, calendar, beat, stale, fresh, out. */
  constructor(url, tell) {
    this.#url = url;
    this.#tell = tell;
    /** Id of the newest commit that was told. */
    this.last = "";
    /** Whether deltas of the calendar are wanted. */
    this.calendar = false;
  }

  start() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#failures = 0;
    this.#open();
  }

  stop() {
    this.#isRunning = false;
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  /** Ask for deltas of the calendar from now on. */
  wantCalendar() {
    if (this.calendar) return;
    this.calendar = true;
    if (!this.#isRunning) return;
    this.stop();
    this.start();
  }

  async #open() {
    const abort = (this.#abort = new AbortController());
    try {
      const headers = { Accept: "text/event-stream", ...(this.last && { "Last-Event-ID": this.last }) };
      const answer = await fetch(this.#url + (this.calendar ? "?calendar=true" : ""), {
        headers,
        cache: "no-store",
        credentials: "same-origin",
        signal: abort.signal,
      });
      if (answer.status === 401 || answer.status === 403) return this.#out();
      if (!answer.ok) {
        const said = await answer.json().catch(() => ({}));
        if (answer.status === 503 && said.message) this.#stale(said.message);
        return this.#later(Number(answer.headers.get("Retry-After")) * 1000);
      }
      await this.#read(answer.body.getReader(), abort);
    } catch (error) {
      if (!abort.signal.aborted) console.debug("live stream broken", error.message);
    }
    if (this.#abort === abort) this.#later(0);
  }

  async #read(reader, abort) {
    const parser = new Parser();
    const decoder = new TextDecoder();
    let isFirst = true;
    for (;;) {
      const silence = setTimeout(() => abort.abort(), SILENT_MS);
      const { value, done } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return;
      for (const found of parser.feed(decoder.decode(value, { stream: true }))) {
        this.#failures = 0;
        if (isFirst && found.event !== "stale") this.#tell({ kind: "fresh" });
        isFirst = false;
        this.#heard(found);
      }
    }
  }

  #heard({ id, event, data }) {
    const said = JSON.parse(data);
    if (event === "end") {
      if (said.status === 401 || said.status === 403) this.#out();
      return;
    }
    this.#tell({ id, ...said, kind: event });
    if (id) this.last = id;
  }

  #stale(why) {
    this.#tell({ kind: "stale", why: `${why.slice(0, 1).toUpperCase()}${why.slice(1)}${why.endsWith(".") ? "" : "."}` });
  }

  /** The login ended: ask nothing more. */
  #out() {
    this.stop();
    this.#tell({ kind: "out" });
  }

  /** Come back after a while: longer each time, and not all browsers at once. */
  #later(least) {
    if (!this.#isRunning) return;
    this.#failures += 1;
    if (this.#failures === PATIENCE) this.#stale(AWAY);
    const wait = Math.min(LONGEST_WAIT_MS, 500 * 2 ** this.#failures) * (0.5 + Math.random() / 2);
    this.#timer = setTimeout(() => this.#open(), Math.max(least || 0, wait));
  }
}
