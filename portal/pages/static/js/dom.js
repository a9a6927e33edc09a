// Elements from names, attributes and children, where text is text; and parts of pages, which the server has written.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const html = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

/** Parts of a page by id, in the words and times of the reader; null: the portal does not answer. A refusal is its error alone. */
export async function parts(address, ...ids) {
  try {
    const answer = await fetch(address, { headers: { "HX-Request": "true" } });
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    const names = answer.ok ? ids : ["error"];
    const made = names.map((id) => found.getElementById(id)).filter(Boolean).map((one) => document.importNode(one, true));
    for (const elt of made) document.dispatchEvent(new CustomEvent("htmx:load", { detail: { elt } }));
    return made.length ? made : null;
  } catch {
    return null;
  }
}
