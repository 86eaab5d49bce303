// How late each rank came to each collective: cells on a canvas, one of them selected by pointer or keys.
(() => {
  const data = tracehunch.data("skew");
  const canvas = document.getElementById("skew-cells");
  if (!data || !canvas) return;
  const by = (id) => document.getElementById("skew-" + id);
  const [box, said, legend] = ["box", "said", "legend"].map(by);
  const late = data.late_us;
  const [down, across] = [data.ranks.length, data.collectives.length];
  const most = late.flat().reduce((one, other) => Math.max(one, other || 0), 0);
  const STRENGTH = [0.06, 0.22, 0.42, 0.68, 1];
  const LEFT = 44, FOOT = 22, TALLEST = 28, HEIGHT = 560;
  const high = Math.max(Math.min(HEIGHT / down, TALLEST), 2);
  let wide = 1, selected = null;

  // Levels are powers of ten below the latest arrival: four of them, and all that is earlier.
  const top = Math.ceil(Math.log10(Math.max(most, 1e-3)));
  const limits = [top - 4, top - 3, top - 2, top - 1].map((power) => 10 ** power);
  const level = (us) => limits.filter((limit) => us >= limit).length;

  const trimmed = (value) => Number(value.toPrecision(4)).toString();
  const time = (us) =>
    us >= 1e6 ? trimmed(us / 1e6) + " s" : us >= 1e3 ? trimmed(us / 1e3) + " ms" : trimmed(us) + " us";
  const span = (pair, one, many) =>
    pair[0] === pair[1] ? `${one} ${pair[0]}` : `${many} ${pair[0]}-${pair[1]}`;

  const x = (column) => LEFT + (column * wide) / across;
  const y = (row) => Math.round(row * high);

  const label = (paint, words, at, height, align) => {
    paint.textAlign = align;
    paint.fillText(words, at, height);
  };

  const axes = (paint, width) => {
    paint.fillStyle = tracehunch.colour("--dim");
    paint.font = "12px " + tracehunch.colour("--font");
    paint.textBaseline = "middle";
    const every = Math.ceil(14 / high);
    for (let row = 0; row < down; row += every) label(paint, data.ranks[row][0], LEFT - 6, Math.max(y(row) + Math.min(high, 14) / 2, 7), "right");
    const middle = y(down) + FOOT / 2;
    if (!data.steps) {
      label(paint, "first collective", LEFT, middle, "left");
      label(paint, "last", width - 1, middle, "right");
      return;
    }
    let until = -Infinity;
    data.steps.forEach(([first], column) => {
      const begins = !column || data.steps[column - 1][0] !== first;
      if (!begins || x(column) < until || x(column) > width - 50) return;
      label(paint, "step " + first, x(column), middle, "left");
      until = x(column) + 64;
    });
  };

  const draw = () => {
    const width = canvas.clientWidth, height = y(down) + FOOT, scale = devicePixelRatio || 1;
    wide = width - LEFT - 1;
    canvas.style.height = height + "px";
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    const paint = canvas.getContext("2d");
    paint.scale(scale, scale);
    const gap = high >= 8 ? 1 : 0;
    paint.fillStyle = tracehunch.colour("--s2");
    late.forEach((cells, row) => cells.forEach((us, column) => {
      if (us === null) return;
      paint.globalAlpha = STRENGTH[level(us)];
      const [from, to] = [Math.round(x(column) * scale) / scale, Math.round(x(column + 1) * scale) / scale];
      paint.fillRect(from, y(row), Math.max(to - from, 0.5), y(row + 1) - y(row) - gap);
    }));
    paint.globalAlpha = 1;
    axes(paint, width);
    if (!selected) return;
    paint.strokeStyle = tracehunch.colour("--fg");
    paint.lineWidth = 2;
    const size = [Math.max(wide / across, 4), Math.max(y(selected[0] + 1) - y(selected[0]), 4)];
    paint.strokeRect(x(selected[1]) - 1, y(selected[0]) - 1, size[0] + 2, size[1] + 2);
  };

  const words = (row, column) => {
    const us = late[row][column];
    const whose = span(data.ranks[row], "rank", "ranks");
    const which = span(data.collectives[column], "collective", "collectives");
    const step = data.steps ? ", " + span(data.steps[column], "step", "steps") : "";
    const several = data.ranks[row][0] !== data.ranks[row][1] || data.collectives[column][0] !== data.collectives[column][1];
    const when = us === null ? "took no part" : us ? `${several ? "up to " : ""}${time(us)} after the first rank` : "there first";
    return `${whose}, ${which}${step}: ${when}`;
  };

  const select = (row, column) => {
    selected = [Math.min(Math.max(row, 0), down - 1), Math.min(Math.max(column, 0), across - 1)];
    said.textContent = words(...selected);
    draw();
  };
  const clear = () => {
    selected = null;
    said.textContent = "";
    draw();
  };
  const under = (event) => {
    const frame = canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - frame.left - LEFT) / wide) * across);
    const row = Math.floor((event.clientY - frame.top) / high);
    return row >= 0 && row < down && column >= 0 && column < across ? [row, column] : null;
  };

  canvas.addEventListener("pointermove", (event) => {
    const cell = under(event);
    if (cell) select(...cell);
  });
  canvas.addEventListener("pointerdown", (event) => {
    const cell = under(event);
    if (cell) select(...cell);
  });
  canvas.addEventListener("keydown", (event) => {
    const [row, column] = selected || [0, -1];
    const moves = {
      ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], ArrowUp: [row - 1, column],
      ArrowDown: selected ? [row + 1, column] : [0, 0], Home: [row, 0], End: [row, across - 1],
    };
    if (event.key === "Escape") clear();
    else if (moves[event.key]) select(...moves[event.key]);
    else return;
    event.preventDefault();
  });

  const swatch = (strength, what) => {
    const item = document.createElement("li");
    const space = "http://www.w3.org/2000/svg";
    const [svg, rect] = ["svg", "rect"].map((name) => document.createElementNS(space, name));
    svg.setAttribute("viewBox", "0 0 10 10");
    svg.setAttribute("aria-hidden", "true");
    for (const [name, value] of [["class", "level"], ["width", 10], ["height", 10], ["fill-opacity", strength]]) rect.setAttribute(name, value);
    svg.append(rect);
    item.append(svg, what);
    legend.append(item);
  };
  STRENGTH.forEach((strength, at) => {
    const from = at ? time(limits[at - 1]) : "", to = at < limits.length ? time(limits[at]) : "";
    swatch(strength, !at ? "under " + to : to ? `${from} to ${to}` : `${from} and more`);
  });
  box.hidden = false;
  draw();
  tracehunch.onTheme.push(draw);
  new ResizeObserver(draw).observe(box);
})();
