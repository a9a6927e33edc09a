// The palette: Ctrl-K or / opens it over any page; the server finds, arrow keys choose, Enter goes.

import { prefix } from "./base.js";

const PAUSE_MS = 120;
let dialog = null;
let chosen = -1;
let asked = 0;

async function show(text) {
  const number = ++asked;
  const answer = await fetch(`${prefix}/palette?q=${encodeURIComponent(text)}`, { headers: { "HX-Request": "true" } });
  if (number !== asked || !answer.ok) return;
  const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".hits");
  const list = dialog.querySelector(".hits");
  const hits = [...found.querySelectorAll("a")].map((hit) => document.importNode(hit, true));
  for (const hit of hits) hit.setAttribute("role", "option");
  list.replaceChildren(...(hits.length ? hits : [found.textContent.trim()]));
  choose(0);
}

function choose(number) {
  const hits = [...dialog.querySelectorAll(".hits a")];
  chosen = hits.length ? (number + hits.length) % hits.length : -1;
  hits.forEach((hit, at) => hit.setAttribute("aria-selected", String(at === chosen)));
  const input = dialog.querySelector("input");
  if (chosen >= 0) {
    input.setAttribute("aria-activedescendant", hits[chosen].id);
    hits[chosen].scrollIntoView({ block: "nearest" });
  } else input.removeAttribute("aria-activedescendant");
}

function made() {
  const found = document.getElementById("palette");
  const input = found.querySelector("input");
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, PAUSE_MS, input.value);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      found.querySelectorAll(".hits a")[chosen]?.click();
    } else if (event.key === "Escape") {
      event.preventDefault(); // a search field would only be emptied
      found.close();
    }
  });
  return found;
}

function open() {
  dialog ??= made();
  if (dialog.open) return;
  dialog.showModal();
  const input = dialog.querySelector("input");
  input.select();
  show(input.value);
}

document.addEventListener("keydown", (event) => {
  const types = event.target.closest?.("input, textarea, select, [contenteditable]");
  if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !types)) {
    event.preventDefault();
    open();
  }
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-palette]")) return;
  event.preventDefault();
  open();
});
