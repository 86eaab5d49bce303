"use strict";
// What every page has: light or dark, tables sorted by their headings, data of a section.
const tracehunch = {
  data(id) {
    const block = document.getElementById("data-" + id);
    return block ? JSON.parse(block.textContent) : null;
  },
  colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  },
  onTheme: [],
};

(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const changed = () => tracehunch.onTheme.forEach((call) => call());
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
})();

(() => {
  const value = (cell) => (cell.dataset.v === undefined ? null : Number(cell.dataset.v));
  const order = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x !== null && y !== null) return x - y;
    if (x !== null || y !== null) return x === null ? 1 : -1;
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  };
  const sort = (head) => {
    const table = head.closest("table");
    const up = head.getAttribute("aria-sort") === "descending";
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => order(a.cells[head.cellIndex], b.cells[head.cellIndex]));
    if (!up) rows.reverse();
    body.append(...rows);
  };
  for (const head of document.querySelectorAll("table.sortable thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head));
  }
})();
