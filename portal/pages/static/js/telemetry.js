// Values of GPUs come after the page: ask again every quarter of a minute while the page is visible, and say it when no
// answer comes.

const LOOK_MS = 15000;

setInterval(() => {
  if (!document.hidden) document.body.dispatchEvent(new Event("egs:look"));
}, LOOK_MS);

function late(event, is) {
  const place = event.target.closest?.("[data-beside]")?.querySelector(":scope > [data-late]");
  if (place) place.hidden = !is;
}

document.addEventListener("htmx:timeout", (event) => late(event, true));
document.addEventListener("htmx:sendError", (event) => late(event, true));
document.addEventListener("htmx:beforeSwap", (event) => late({ target: event.detail.requestConfig.elt }, false));
// A refusal has no `#values`; its sentence is put there.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, requestConfig } = event.detail;
  if (xhr.status < 400 || !requestConfig.elt.hasAttribute("data-beside")) return;
  event.detail.selectOverride = "#error";
  event.detail.swapOverride = "innerHTML";
  event.detail.shouldSwap = true;
});
