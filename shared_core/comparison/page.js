"use strict";
// Every head of a column becomes a button: figures first from high to low, text from A to Z.
const valueOf = (row, at, isFigure) => {
  const cell = row.cells[at];
  return isFigure ? parseFloat(cell.dataset.value) : cell.textContent;
};

const sort = (table, head, at) => {
  const isFigure = head.classList.contains("figure");
  const first = isFigure ? "descending" : "ascending";
  const second = isFigure ? "ascending" : "descending";
  const order = head.getAttribute("aria-sort") === first ? second : first;
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].sort((one, other) => {
    const a = valueOf(one, at, isFigure);
    const b = valueOf(other, at, isFigure);
    if (isFigure && (isNaN(a) || isNaN(b))) return isNaN(a) - isNaN(b); // empty ones come last
    return sign * ((a > b) - (a < b));
  });
  table.tHead.querySelectorAll("[aria-sort]").forEach((each) => each.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", order);
  table.tBodies[0].append(...rows);
};

for (const table of document.querySelectorAll("table")) {
  [...table.tHead.rows[table.tHead.rows.length - 1].cells].forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, head, at));
    head.append(button);
  });
}
