// The queue of admins: rows are dragged, or moved with the arrow keys; a dialog shows the effect before anything is written.

const dialog = document.getElementById("change-dialog");
const said = document.getElementById("moves");
let moving = null; // the row that is being moved, and where it was

const table = () => document.querySelector("table[data-queue]");
const rows = () => [...(table()?.tBodies[0].rows ?? [])];

function begin(row) {
  if (!moving) moving = { row, next: row.nextElementSibling };
  row.classList.add("moving");
}

function putBack() {
  if (!moving) return;
  moving.row.classList.remove("moving");
  moving.row.parentNode?.insertBefore(moving.row, moving.next?.isConnected ? moving.next : null);
  moving = null;
}

/** The address of the change that takes the row where it is now; null: it is where it was. */
function wanted(row) {
  const next = row.nextElementSibling;
  const previous = row.previousElementSibling;
  if (next === moving.next) return null;
  const url = new URL(table().dataset.queue, location.href);
  url.searchParams.set("gpr", row.dataset.key);
  const isPeer = (other) => other?.dataset.priority === row.dataset.priority;
  if (isPeer(next)) url.searchParams.set("before", next.dataset.key);
  else if (isPeer(previous)) url.searchParams.set("to", "last");
  else url.searchParams.set("priority", (previous ?? next).dataset.priority); // among others: priorities count first
  return url.href;
}

async function show(url) {
  await window.htmx.ajax("GET", url, { target: "#change", select: "#change", swap: "outerHTML" });
  if (!dialog.open) dialog.showModal();
}

function ask() {
  const { row } = moving;
  const url = wanted(row);
  if (url) show(url);
  else putBack();
}

// -- by pointer -------------------------------------------------------------------------------------------------------

function ready() {
  for (const row of rows()) {
    const handle = row.querySelector(".handle");
    handle.hidden = false;
    handle.onpointerdown = () => { row.draggable = true; };
    handle.onpointerup = () => { row.draggable = false; };
  }
}

document.addEventListener("dragstart", (event) => {
  const row = event.target.closest?.("table[data-queue] tbody tr");
  if (!row) return;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", row.dataset.key);
  begin(row);
});
document.addEventListener("dragover", (event) => {
  const over = moving && event.target.closest?.("table[data-queue] tbody tr");
  if (!over) return;
  event.preventDefault();
  if (over === moving.row) return;
  const box = over.getBoundingClientRect();
  over.parentNode.insertBefore(moving.row, event.clientY < box.top + box.height / 2 ? over : over.nextElementSibling);
});
document.addEventListener("drop", (event) => {
  if (!moving) return;
  event.preventDefault();
  moving.row.draggable = false;
  moving.dropped = true;
  ask();
});
document.addEventListener("dragend", () => {
  if (moving && !moving.dropped) putBack();
});

// -- by keyboard ------------------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  const handle = event.target.closest?.(".handle");
  if (!handle) return;
  const row = handle.closest("tr");
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step) {
    event.preventDefault();
    begin(row);
    const other = step < 0 ? row.previousElementSibling : row.nextElementSibling;
    if (other) row.parentNode.insertBefore(row, step < 0 ? other : other.nextElementSibling);
    handle.focus();
    said.textContent = `${row.dataset.key}: place ${rows().indexOf(row) + 1} of ${rows().length}. Enter shows the effect.`;
  } else if (event.key === "Enter" && moving) {
    event.preventDefault();
    ask();
  } else if (event.key === "Escape" && moving) {
    putBack();
    handle.focus();
    said.textContent = "Put back.";
  }
});

// -- the dialog -------------------------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  const opens = event.target.closest("a[data-change]");
  if (opens && table()) {
    event.preventDefault();
    show(opens.href);
  }
  if (event.target.closest("[data-closes]") && dialog.open) {
    event.preventDefault();
    dialog.close();
  }
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-preview]");
  if (!form || !dialog.open) return;
  event.preventDefault();
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form, event.submitter)) url.searchParams.set(name, value);
  show(url.href);
});
dialog.addEventListener("close", putBack);
// What is being moved stays where the reader put it until they decide.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (moving && event.target.id === "queue") event.preventDefault();
});
document.addEventListener("htmx:afterSettle", ready);
ready();
