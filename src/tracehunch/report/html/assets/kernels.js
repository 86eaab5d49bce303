// Kernels: filter by words, group by op, module or library. One kernel may run in many modules: what each
// module takes was counted beforehand.
const perModule = tracehunch.data("kernels") || [];
[...document.querySelectorAll(".kernels")].forEach((box, place) => {
  const table = box.querySelector("table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells].map((one) => one.textContent.trim());
  const column = (name) => heads.indexOf(name);
  const rows = [...body.rows];
  const bar = document.createElement("div");
  const filter = document.createElement("input");
  const group = document.createElement("select");
  const found = document.createElement("span");
  bar.className = "bar only-screen";
  filter.type = "search";
  filter.placeholder = "Filter";
  filter.setAttribute("aria-label", "Filter kernels by words");
  group.setAttribute("aria-label", "Group kernels");
  found.className = "dim";
  found.setAttribute("role", "status");
  for (const [label, value] of [["each kernel", ""], ["by op", "launched by"], ["by module", "module"], ["by library", "library"]]) {
    const option = new Option(label, value);
    if (!value || column(value) >= 0) group.append(option);
  }
  bar.append(filter, group, found);
  box.querySelector(".frame").before(bar);

  const number = (row, name) => Number(row.cells[column(name)].dataset.v || 0);
  const total = rows.reduce((sum, row) => sum + number(row, "time"), 0);
  const us = (value) => (value >= 1e3 ? (value / 1e3).toPrecision(4) + " ms" : value.toPrecision(4) + " us");
  const cell = (row, at, words, value) => {
    const one = row.cells[at];
    one.textContent = words;
    if (value !== undefined) one.dataset.v = value;
  };
  const grouped = (kept, by) => {
    const groups = new Map();
    for (const row of kept) {
      const key = row.cells[column(by)].textContent || "(none)";
      groups.set(key, (groups.get(key) || []).concat(row));
    }
    return [...groups].map(([key, members]) => {
      const made = members[0].cloneNode(true);
      for (const one of made.cells) {
        one.textContent = "";
        delete one.dataset.v;
      }
      const time = members.reduce((sum, row) => sum + number(row, "time"), 0);
      const runs = members.reduce((sum, row) => sum + number(row, "runs"), 0);
      cell(made, column("share"), ((100 * time) / total).toPrecision(2) + "%", time);
      cell(made, column("time"), us(time), time);
      cell(made, column("runs"), runs.toLocaleString("en"), runs);
      cell(made, column(by), key);
      cell(made, column("name"), members.length + (members.length === 1 ? " kernel" : " kernels"));
      return made;
    }).sort((a, b) => number(b, "time") - number(a, "time"));
  };
  const ofModules = (words) =>
    (perModule[place] || [])
      .filter(([module]) => words.every((word) => module.toLowerCase().includes(word)))
      .map(([module, time, runs, kernels]) => {
        const made = rows[0].cloneNode(true);
        for (const one of made.cells) {
          one.textContent = "";
          delete one.dataset.v;
        }
        cell(made, column("share"), ((100 * time) / total).toPrecision(2) + "%", time);
        cell(made, column("time"), us(time), time);
        cell(made, column("runs"), runs.toLocaleString("en"), runs);
        cell(made, column("module"), module || "(none)");
        cell(made, column("name"), kernels + (kernels === 1 ? " kernel" : " kernels"));
        return made;
      });
  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = rows.filter((row) => {
      const text = row.textContent.toLowerCase() + " " + (row.querySelector("[title]")?.title || "").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const time = kept.reduce((sum, row) => sum + number(row, "time"), 0);
    if (group.value === "module") {
      const made = ofModules(words);
      found.textContent = made.length + (made.length === 1 ? " module" : " modules") + ", means over the calls";
      body.replaceChildren(...made);
      return;
    }
    found.textContent = words.length ? kept.length + " of " + rows.length + ", " + us(time) : "";
    body.replaceChildren(...(group.value ? grouped(kept, group.value) : kept));
  };
  filter.addEventListener("input", show);
  group.addEventListener("change", show);
});
