// Painting: only what is in view, and at most a rectangle for each pixel of a line.
(() => {
  const GPU = ["--s1", "--s2", "--s3", "--s5", "--s6", "--s7", "--s8", "--s4"];
  const HOST = ["--s8", "--s1", "--s6", "--s4", "--s7", "--s2"];
  const CAUSES = ["--s2", "--s1", "--s4", "--s3", "--s7", "--s6", "--s5"];

  tracehunch.timeline.painter = (canvas, model, panes) => {
    const pen = canvas.getContext("2d");
    const { data, start, name, family } = model;
    const ruler = 22;
    let paint, letter, width, height;
    // Like names look alike, and neighbours of one family a little different.
    const shade = Float32Array.from(data.names, (text) => {
      let sum = 7;
      for (let i = 0; i < text.length; i++) sum = (sum * 31 + text.charCodeAt(i)) >>> 0;
      return 0.36 + 0.11 * (sum % 3);
    });
    const ranked = data.gaps.totals.map((total, cause) => [total, cause]).filter((one) => one[0] > 0);
    ranked.sort((a, b) => b[0] - a[0]);
    const rank = new Map(ranked.map(([, cause], at) => [cause, at]));
    const nHost = data.families.length - GPU.length;

    const colours = () => {
      const of = tracehunch.colour;
      paint = {
        families: data.families.map((_, at) => of(at < nHost ? HOST[at] : GPU[at - nHost])),
        fg: of("--fg"), dim: of("--dim"), line: of("--line"), bg: of("--bg"), soft: of("--soft"),
        accent: of("--accent"), mark: of("--error"),
        causes: data.gaps.causes.map((_, cause) => of(CAUSES[rank.get(cause)] || "--dim")),
      };
    };
    const size = () => {
      const scale = devicePixelRatio || 1;
      width = panes[0].clientWidth;
      height = canvas.parentElement.clientHeight;
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = width + "px";
      canvas.style.height = height + "px";
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.font = "11px " + tracehunch.colour("--mono");
      pen.textBaseline = "middle";
      letter = pen.measureText("0000000000").width / 10;
      return width;
    };
    const write = (text, x, y, room) => {
      const fits = Math.floor(room / letter);
      if (fits > 2) pen.fillText(text.length <= fits ? text : text.slice(0, fits - 1) + "\u2026", x, y);
    };

    const grid = (view) => {
      const span = view.to - view.from;
      const wanted = (span * data.unit_ns) / Math.max(width / 110, 2);
      const power = 10 ** Math.floor(Math.log10(wanted));
      const every = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= wanted) / data.unit_ns;
      pen.strokeStyle = paint.line;
      pen.fillStyle = paint.dim;
      pen.beginPath();
      for (let at = Math.ceil(view.from / every) * every; at <= view.to; at += every) {
        const x = Math.round(view.x(at)) + 0.5;
        pen.moveTo(x, 0);
        pen.lineTo(x, height);
        if (width - x > 40) pen.fillText(at === 0 ? "0" : label(at, every), x + 4, 11);
      }
      pen.stroke();
    };
    const label = (at, every) => {
      const ns = at * data.unit_ns;
      const [step, unit] = every * data.unit_ns >= 1e9 ? [1e9, "s"] : every * data.unit_ns >= 1e5 ? [1e6, "ms"] : [1e3, "us"];
      const digits = Math.max(0, Math.ceil(-Math.log10((every * data.unit_ns) / step) - 1e-9));
      return (ns / step).toFixed(digits) + " " + unit;
    };

    const gaps = (lane, y, view) => {
      let reached = -1;
      for (const [device, from, to, cause] of data.gaps.pieces) {
        if (device !== lane.device || to < view.from || from > view.to) continue;
        const left = Math.max(view.x(from), 0), right = Math.min(view.x(to), width);
        if (right < reached) continue;
        const wide = Math.max(right - left, 1);
        pen.fillStyle = paint.causes[cause];
        pen.fillRect(left, y, wide, model.GAP);
        reached = left + 1;
        if (wide > 70) {
          pen.fillStyle = paint.bg;
          write("idle: " + data.gaps.causes[cause], left + 4, y + model.GAP / 2 + 0.5, wide - 8);
        }
      }
    };

    const box = (i, y, view, faded) => {
      const left = Math.max(view.x(start[i]), 0), right = Math.min(view.x(model.end(i)), width);
      const wide = Math.max(right - left - (right - left > 3 ? 0.6 : 0), 1);
      pen.globalAlpha = faded ? 0.13 : wide < 2 ? 0.75 : shade[name[i]];
      pen.fillStyle = paint.families[family[i]];
      pen.fillRect(left, y, wide, model.ROW - 2);
      if (wide > 24) {
        pen.globalAlpha = faded ? 0.4 : 1;
        pen.fillStyle = paint.fg;
        write(model.called(i), left + 3, y + model.ROW / 2, wide - 6);
      }
      return [left, wide];
    };
    const line = (one, y, view) => {
      const faded = view.strong !== null;
      const pixel = (view.to - view.from) / width;
      for (let i = model.firstAfter(one, view.from); i < one.to && start[i] <= view.to; ) {
        const [left, wide] = box(i, y, view, faded && !view.flags[i]);
        if (wide > 1) i++;
        else i = Math.max(i + 1, model.firstAfter(one, view.from + (left + 1) * pixel));
      }
      if (faded) strong(one, y, view, pixel);
      pen.globalAlpha = 1;
    };
    const strong = (one, y, view, pixel) => {
      const from = Math.max(model.firstAfter(one, view.from), one.from);
      for (let at = lower(view.strong, from); at < view.strong.length; at++) {
        const i = view.strong[at];
        if (i >= one.to || start[i] > view.to) break;
        const [left, wide] = box(i, y, view, false);
        pen.globalAlpha = 1;
        pen.strokeStyle = paint.mark;
        pen.strokeRect(left + 0.5, y + 0.5, Math.max(wide - 1, 1), model.ROW - 3);
        if (wide <= 1) at = Math.max(at, lower(view.strong, model.firstAfter(one, view.from + (left + 1) * pixel)) - 1);
      }
    };
    const lower = (sorted, wanted) => {
      let low = 0, high = sorted.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (sorted[middle] < wanted) low = middle + 1;
        else high = middle;
      }
      return low;
    };

    const inPane = (pane, act) => {
      pen.save();
      pen.beginPath();
      pen.rect(0, pane.offsetTop, width, pane.clientHeight);
      pen.clip();
      act(pane.offsetTop - pane.scrollTop);
      pen.restore();
    };
    const lanes = (gpu, pane, view) => inPane(pane, (shift) => {
      for (const lane of model.lanes) {
        if (lane.gpu !== gpu) continue;
        if (lane.gaps >= 0) gaps(lane, lane.gaps + shift, view);
        if (lane.folded) continue;
        for (const one of lane.lines) {
          const y = one.y + shift;
          if (y > pane.offsetTop - model.ROW && y < pane.offsetTop + pane.clientHeight) line(one, y, view);
        }
      }
    });

    // Where an event is on the canvas: its middle, kept within its pane; null in a folded lane.
    const middle = (one) => {
      const found = model.line(one), pane = panes[Number(found.lane.gpu)];
      const y = (found.lane.folded ? found.lane.top + model.LABEL / 2 : found.y + model.ROW / 2) - pane.scrollTop;
      return pane.offsetTop + Math.min(Math.max(y, 0), pane.clientHeight);
    };
    const arrow = (from, to, view) => {
      const [t1, t2] = [model.end(from), start[to]];
      const [x1, x2] = [view.x(t1), view.x(t2)].map((x) => Math.min(Math.max(x, 0), width));
      const [y1, y2] = [middle(from), middle(to)];
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.bezierCurveTo(x1 + 30, y1, x2 - 30, y2, x2, y2);
      pen.stroke();
      if (t2 >= view.from && t2 <= view.to) {
        pen.beginPath();
        pen.moveTo(x2, y2);
        pen.lineTo(x2 - 7, y2 - 4);
        pen.lineTo(x2 - 7, y2 + 4);
        pen.fill();
      } else if (t2 > view.to) beyond("launched " + model.us(t2 - view.to) + " further on \u2192", width - 6, y2, "right");
      else beyond("\u2190 launched " + model.us(view.from - t2) + " before", 6, y2, "left");
      if (t1 < view.from) beyond("\u2190 launch, " + model.us(view.from - t1) + " before", 6, y1, "left");
      else if (t1 > view.to) beyond("launch, " + model.us(t1 - view.to) + " further on \u2192", width - 6, y1, "right");
    };
    const beyond = (text, x, y, align) => {
      const wide = pen.measureText(text).width;
      pen.fillStyle = paint.bg;
      pen.fillRect(align === "left" ? x - 3 : x - wide - 3, y - 8, wide + 6, 16);
      pen.fillStyle = paint.accent;
      pen.textAlign = align;
      pen.fillText(text, x, y);
      pen.textAlign = "left";
    };
    const selection = (view) => {
      const one = view.selected;
      if (one < 0) return;
      const found = model.line(one), pane = panes[Number(found.lane.gpu)];
      if (found.y >= 0)
        inPane(pane, (shift) => {
          const left = Math.max(view.x(start[one]), -4), right = Math.min(view.x(model.end(one)), width + 4);
          pen.strokeStyle = paint.fg;
          pen.lineWidth = 2;
          pen.strokeRect(left, found.y + shift, Math.max(right - left, 2), model.ROW - 2);
        });
      pen.strokeStyle = pen.fillStyle = paint.accent;
      pen.lineWidth = 1.5;
      if (model.launch[one] >= 0) arrow(model.launch[one], one, view);
      else for (const other of model.launched(one).slice(0, 64)) arrow(one, other, view);
      pen.lineWidth = 1;
    };

    return {
      ruler, colours, size,
      colour: (at) => paint.families[at],
      cause: (at) => paint.causes[at],
      paint: (view) => {
        pen.clearRect(0, 0, width, height);
        grid(view);
        lanes(false, panes[0], view);
        lanes(true, panes[1], view);
        selection(view);
      },
    };
  };
})();
