// Each slider says its value while it moves.

document.addEventListener("input", (event) => {
  const said = event.target.type === "range" && document.querySelector(`output[for="${event.target.id}"]`);
  if (said) said.textContent = event.target.value;
});
