
"use strict";
// Columns are sorted by buttons, which exist only where this script runs.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(table, headings, column));
  });
}

function sort(table, headings, column) {
  const heading = headings[column];
  // Numbers begin with the largest, texts with the first.
  const first = column === 0 ? "ascending" : "descending";
  const other = column === 0 ? "descending" : "ascending";
  const order = heading.getAttribute("aria-sort") === first ? other : first;
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[column], column), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // what is missing is last
    return sign * (column === 0 ? a.localeCompare(b) : a - b);
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
  headings.forEach((each) => each.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", order);
}

function key(cell, column) {
  if (column === 0) return cell.textContent;
  return "value" in cell.dataset ? Number(cell.dataset.value) : null;
}
