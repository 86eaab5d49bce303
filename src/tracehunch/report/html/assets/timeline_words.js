// What the timeline says of an event: its details, the line that is read aloud, the tooltip; and the legend.
(() => {
  const element = (tag, text, css) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (css) made.className = css;
    return made;
  };
  const three = (column, at) => [0, 1, 2].map((d) => column[3 * at + d]);
  const sizes = (column, at) => (column[3 * at] >= 0 ? three(column, at).join(" x ") : "");
  const percent = (value) => (value > 0 && value < 0.1 ? "<0.1%" : value.toFixed(1) + "%");
  const whole = (n) => n.toLocaleString("en");

  const add = (list, label, ...said) => {
    const kept = said.filter((one) => one !== "" && one !== null && one !== undefined);
    if (!kept.length) return;
    const value = element("dd");
    value.append(...kept);
    list.append(element("dt", label), value);
  };

  tracehunch.timeline.words = (model, go) => {
    const { data, start, dur, kind, event, launch, op, input, gpu, module } = model;
    const link = (one) => {
      const button = element("button", model.called(one), "go");
      button.type = "button";
      button.addEventListener("click", () => go(one));
      return button;
    };
    const onGpu = (list, one) => {
      const at = gpu[one];
      add(list, "grid", sizes(model.grid, at));
      add(list, "block", sizes(model.block, at));
      if (model.registers[at] >= 0) add(list, "registers", model.registers[at] + " a thread");
      if (model.shared[at] >= 0) add(list, "shared memory", whole(model.shared[at]) + " bytes a block");
      if (model.occupancy[at] >= 0) add(list, "occupancy", percent(model.occupancy[at]) + " (recomputed)");
      if (model.bytes[at] >= 0) add(list, "bytes", whole(model.bytes[at]));
      if (launch[one] >= 0) {
        add(list, "launched by", link(launch[one]));
        const wait = start[one] - model.end(launch[one]);
        add(list, "queued", (wait < 0 ? "-" : "") + model.us(Math.abs(wait)) + " from the launch's end to its start");
      } else add(list, "launched by", "a launch that is not shown or not in the file");
      for (const line of data.decoded[model.name[one]] || []) {
        const [label, ...rest] = line.split(/ {2,}/);
        add(list, rest.length ? label : "name", rest.length ? rest.join(" ") : line);
      }
    };
    const details = (one) => {
      const list = element("dl");
      const kernel = gpu[one] >= 0 && data.kinds[kind[one]] === "kernel";
      add(list, "kind", data.kinds[kind[one]] + (kernel ? " (" + data.families[model.family[one]] + ")" : ""));
      add(list, "duration", model.us(dur[one]));
      add(list, "start", model.us(start[one]) + " from the left edge of all that is shown");
      add(list, "on", model.line(one).lane.label);
      if (op[one] >= 0 && op[one] !== one) add(list, "op", link(op[one]));
      add(list, "inputs", data.inputs[input[one] || (op[one] >= 0 ? input[op[one]] : 0)]);
      add(list, "module", data.modules[module[one]]);
      if (gpu[one] >= 0) onGpu(list, one);
      const made = model.launched(one);
      if (made.length) {
        const more = made.length > 8 ? " and " + (made.length - 8) + " more" : "";
        add(list, "launches", ...made.slice(0, 8).map(link), more);
      }
      add(list, "event", "traceEvents[" + event[one] + "]");
      return [element("h3", model.called(one)), list];
    };
    const brief = (one) => {
      const parts = [model.called(one).slice(0, 120), data.kinds[kind[one]], model.us(dur[one])];
      const made = model.launched(one).length;
      if (made) parts.push("launches " + made + (made === 1 ? " activity" : " activities"));
      return parts.join(", ");
    };
    const aloud = (one) => {
      const line = model.line(one);
      return brief(one) + ", " + (one - line.from + 1) + " of " + (line.to - line.from) + " on this line of " + line.lane.label;
    };

    const swatch = (colour, text) => {
      const item = element("li");
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      svg.setAttribute("viewBox", "0 0 10 10");
      svg.setAttribute("aria-hidden", "true");
      for (const side of ["width", "height"]) square.setAttribute(side, "10");
      square.setAttribute("fill", colour);
      svg.append(square);
      item.append(svg, text);
      return item;
    };
    const listed = (title, items) => {
      const box = element("div");
      const list = element("ul");
      list.append(...items);
      box.append(element("span", title), list);
      return box;
    };
    const legend = (painter) => {
      const used = [...new Set(model.family)].sort((a, b) => a - b);
      const families = (onGpu) =>
        used.filter((at) => onGpu === at >= data.families.length - 8).map((at) => swatch(painter.colour(at), data.families[at]));
      const totals = data.gaps.totals.map((total, cause) => [total, cause]).filter((one) => one[0] > 0);
      totals.sort((a, b) => b[0] - a[0]);
      const all = totals.reduce((sum, one) => sum + one[0], 0);
      const idle = totals.map(([total, cause]) =>
        swatch(painter.cause(cause), data.gaps.causes[cause] + " " + model.us(total) + (totals.length > 1 ? " (" + ((100 * total) / all).toPrecision(2) + "%)" : "")));
      const rows = [["Host", families(false)], ["GPU", families(true)], ["GPU idle", idle]];
      return rows.filter((row) => row[1].length).map((row) => listed(...row));
    };
    return { details, brief, aloud, legend, element };
  };
})();
