// The list of requests: how many are picked.
import { each } from "./base.js";

function counted() {
  const button = document.getElementById("cancel-several");
  if (!button) return;
  const picked = document.querySelectorAll('.requests .pick input:checked').length;
  button.textContent = picked ? `Cancel ${picked} picked` : "Cancel picked";
  button.disabled = picked === 0;
}

document.addEventListener("change", (event) => event.target.closest(".pick") && counted());
each("#cancel-several", counted);
document.addEventListener("htmx:afterSettle", counted);

// A link to a form that is folded away opens it.
function opened() {
  const there = location.hash && document.getElementById(location.hash.slice(1));
  if (there?.tagName === "DETAILS") there.open = true;
}
addEventListener("hashchange", opened);
opened();
