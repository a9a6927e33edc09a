// The live stream of all tabs of one browser, in a worker that they share.

import { Hub } from "./live-hub.js";

const ports = new Set();
let hub = null;

function send(message) {
  for (const port of ports) port.postMessage(message);
}

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data.kind === "bye") {
      ports.delete(port);
      if (!ports.size) hub?.stream.stop();
      return;
    }
    ports.add(port);
    hub ??= new Hub(data.url, send);
    hub.join(data.has, data.calendar);
  };
};
