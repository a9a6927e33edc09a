// Sliders over the kept states; each drives the list beside it, which works without them.

for (const slider of document.querySelectorAll("input[data-drives]")) {
  const list = document.getElementById(slider.dataset.drives);
  const first = list.options.length - 1 - Number(slider.max); // options that are no state come first
  slider.hidden = false;
  slider.value = list.selectedIndex < first ? slider.max : list.selectedIndex - first;
  slider.addEventListener("input", () => {
    list.selectedIndex = Number(slider.value) + first;
    slider.setAttribute("aria-valuetext", list.selectedOptions[0].textContent);
  });
  slider.addEventListener("change", () => list.form.requestSubmit());
  list.addEventListener("change", () => { slider.value = Math.max(0, list.selectedIndex - first); });
}
