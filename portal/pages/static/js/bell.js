// The bell: it asks again only if something of its reader changed, and to open it is to have read what is in its list.

import { prefix } from "./base.js";

const bell = document.getElementById("bell");

bell?.addEventListener("toggle", async () => {
  const list = document.getElementById("bell-list");
  const count = document.getElementById("bell-count");
  if (!bell.open || !list.dataset.mark || count.hidden) return;
  const answer = await fetch(`${prefix}/bell/read`, {
    method: "POST",
    body: new URLSearchParams({ mark: list.dataset.mark }),
    redirect: "manual",
  });
  if (answer.type === "opaqueredirect") count.hidden = true;
});

document.body.addEventListener("egs:changed", ({ detail }) => {
  const concerns = !detail || detail.all || detail.requests?.length > 0 || detail.nodes?.length > 0;
  if (concerns) document.body.dispatchEvent(new Event("egs:news"));
});
