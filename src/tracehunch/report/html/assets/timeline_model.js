// The timeline's data: columns come deflated; an event is its position in them.
tracehunch.timeline = {};
(() => {
  const types = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f32: Float32Array, f64: Float64Array };
  const unpack = async (column) => {
    const bytes = Uint8Array.from(atob(column.data), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new types[column.kind](await new Response(stream).arrayBuffer());
  };
  const ROW = 17, LABEL = 20, GAP = 13, APART = 6;

  const texts = (unit_ns) => (units) => {
    const value = (units * unit_ns) / 1e3;
    if (value >= 1e6) return (value / 1e6).toPrecision(4) + " s";
    if (value >= 1e3) return (value / 1e3).toPrecision(4) + " ms";
    return (value >= 10 ? value.toPrecision(4) : value.toFixed(2)) + " us";
  };

  // Sizes and places, by whether a lane is a GPU's: each kind has a pane of its own that scrolls.
  const arrange = (model) => {
    model.heights = [0, 0];
    const devices = new Set();
    for (const lane of model.lanes) {
      const pane = Number(lane.gpu);
      let y = model.heights[pane];
      lane.top = y;
      y += LABEL;
      lane.gaps = -1;
      if (lane.gpu && !devices.has(lane.device) && model.data.gaps.pieces.length && !lane.folded) {
        lane.gaps = y;
        devices.add(lane.device);
        y += GAP + 2;
      }
      for (const line of lane.lines) {
        line.y = lane.folded ? -1 : y;
        if (!lane.folded) y += ROW;
      }
      model.heights[pane] = y + APART;
    }
  };

  tracehunch.timeline.load = async (data) => {
    const columns = {};
    for (const [key, value] of Object.entries(data))
      if (value && value.kind && value.data !== undefined) columns[key] = await unpack(value);
    const { start, dur, launch } = columns;
    const lanes = data.lanes.map((one) => ({ ...one, lines: one.lines.map(([from, to]) => ({ from, to, y: -1 })) }));
    const lines = [];
    for (const lane of lanes)
      for (const line of lane.lines) {
        line.lane = lane;
        lines.push(line);
      }
    const made = new Map(); // launch -> what it launched
    launch.forEach((from, to) => {
      if (from < 0) return;
      if (!made.has(from)) made.set(from, []);
      made.get(from).push(to);
    });
    const model = { data, ...columns, lanes, lines, heights: [0, 0], us: texts(data.unit_ns), ROW, LABEL, GAP };
    model.end = (one) => start[one] + dur[one];
    model.called = (one) => data.names[columns.name[one]];
    model.launched = (one) => made.get(one) || [];
    // The place of an event's line: lines are in the order of events.
    model.place = (one) => {
      let low = 0, high = lines.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (lines[middle].from <= one) low = middle;
        else high = middle - 1;
      }
      return low;
    };
    model.line = (one) => lines[model.place(one)];
    // The first event of a line that ends after a time: on a line, starts ascend and nothing overlaps.
    model.firstAfter = (line, when) => {
      let low = line.from, high = line.to;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (start[middle] + dur[middle] < when) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    model.arrange = () => arrange(model);
    model.arrange();
    return model;
  };
})();
