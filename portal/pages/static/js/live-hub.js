// One live stream for several tabs: what the stream says goes to all of them, and who joins hears where things stand.

import { LiveStream } from "./live-stream.js";

export class Hub {
  /** `send(message)` reaches every tab. */
  constructor(url, send) {
    this.why = "";
    this.isOut = false;
    this.commit = null;
    this.send = send;
    this.stream = new LiveStream(url, (message) => this.#told(message));
  }

  #told(message) {
    if (message.kind === "commit" || message.kind === "beat") this.#stands(message);
    if (message.kind === "stale") this.why = message.why;
    if (message.kind === "fresh") this.why = "";
    this.isOut = message.kind === "out";
    this.send(message);
  }

  #stands({ status, main, age }) {
    this.commit = { status, main, age, at: Date.now() };
  }

  /** A page was opened that shows the commits `has`. Its server knew the login, so a stream that had stopped goes on. */
  join(has, calendar) {
    if (!this.stream.last) this.stream.last = has;
    if (calendar) this.stream.wantCalendar();
    this.isOut = false;
    this.stream.start();
    if (!this.commit) return;
    const { status, main, age, at } = this.commit;
    this.send({ kind: "stands", status, main, age: age + (Date.now() - at) / 1000, why: this.why });
  }
}
