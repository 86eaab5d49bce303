// The pointer: drag moves, Ctrl and the wheel zoom at it, two fingers pinch, the wheel alone scrolls, a click selects.
tracehunch.timeline.pointer = ({ on, frame, panes, tip, model, words, view, width, move, zoom, pan, select }) => {
  const { data, start } = model;
  const place = (moved) => {
    const edge = frame.getBoundingClientRect();
    return [moved.clientX - edge.left - frame.clientLeft, moved.clientY - edge.top - frame.clientTop];
  };
  const paneAt = (py) => panes.find((one) => !one.hidden && py >= one.offsetTop && py < one.offsetTop + one.clientHeight);
  const under = (px, py) => {
    const pane = paneAt(py);
    if (!pane) return {};
    const y = py - pane.offsetTop + pane.scrollTop, gpu = pane === panes[1];
    const at = view.time(px), slack = (1.5 / width()) * (view.to - view.from);
    const lane = model.lanes.find((one) => one.gpu === gpu && one.gaps >= 0 && y >= one.gaps && y < one.gaps + model.GAP);
    if (lane) return { gap: data.gaps.pieces.find((one) => one[0] === lane.device && one[1] - slack <= at && one[2] + slack >= at) };
    const line = model.lines.find((one) => one.lane.gpu === gpu && one.y >= 0 && y >= one.y && y < one.y + model.ROW);
    if (!line) return {};
    let best = -1, n = 0;
    for (let i = model.firstAfter(line, at - slack); i < line.to && start[i] <= at + slack && n < 50; i++, n++)
      if (best < 0 || (start[i] <= at && model.end(i) >= at)) best = i;
    return { event: best, n };
  };
  const hideTip = () => (tip.hidden = true);
  const showTip = (px, py) => {
    const { event = -1, n = 0, gap } = under(px, py);
    tip.hidden = event < 0 && !gap;
    if (tip.hidden) return;
    tip.textContent = gap
      ? "GPU idle " + model.us(gap[2] - gap[1]) + ": " + data.gaps.causes[gap[3]]
      : words.brief(event) + (n > 2 ? " (and others as near: zoom in)" : "");
    const wide = tip.offsetWidth;
    tip.style.left = Math.max(Math.min(px + 12, width() - wide - 4), 2) + "px";
    tip.style.top = (py + 18 + tip.offsetHeight > frame.clientHeight ? py - tip.offsetHeight - 8 : py + 18) + "px";
  };
  const held = new Map();
  let drag = null;
  const grip = () => {
    const xs = [...held.values()].map((one) => one.px);
    const middle = xs.reduce((sum, one) => sum + one, 0) / xs.length;
    return { middle, apart: Math.max(Math.abs(xs[0] - xs[xs.length - 1]), 20), time: view.time(middle), span: view.to - view.from };
  };
  on(frame, "pointerdown", (moved) => {
    const [px, py] = place(moved);
    if (moved.button || px > width() || moved.target.closest("button")) return;
    held.set(moved.pointerId, { px, py });
    const pane = paneAt(py);
    drag = { ...grip(), px, py, pane, top: pane ? pane.scrollTop : 0, moved: held.size > 1 };
    frame.setPointerCapture(moved.pointerId);
  });
  on(frame, "pointermove", (moved) => {
    const [px, py] = place(moved);
    view.pointer = px;
    if (!drag || !held.has(moved.pointerId)) return showTip(px, py);
    held.set(moved.pointerId, { px, py });
    if (Math.abs(px - drag.px) > 3 || Math.abs(py - drag.py) > 3) drag.moved = true;
    if (!drag.moved) return;
    const now = grip();
    const span = Math.min(Math.max(held.size > 1 ? (drag.span * drag.apart) / now.apart : drag.span, 20), data.span);
    move(drag.time - (now.middle / width()) * span, drag.time + (1 - now.middle / width()) * span);
    if (drag.pane && held.size === 1 && moved.pointerType === "mouse") drag.pane.scrollTop = drag.top + drag.py - py;
  });
  const release = (moved) => {
    if (!held.delete(moved.pointerId)) return;
    const [px, py] = place(moved);
    if (moved.type === "pointerup" && !drag.moved) select(under(px, py).event ?? -1);
    drag = held.size ? { ...grip(), px, py, pane: null, top: 0, moved: true } : null;
  };
  on(frame, "pointerup", release);
  on(frame, "pointercancel", release);
  on(frame, "pointerleave", () => {
    view.pointer = null;
    hideTip();
  });
  on(frame, "wheel", (turned) => {
    const sideways = turned.shiftKey || Math.abs(turned.deltaX) > Math.abs(turned.deltaY);
    if (!turned.ctrlKey && !sideways) return;
    turned.preventDefault();
    const lines = turned.deltaMode === 1 ? 16 : 1;
    if (turned.ctrlKey) zoom(1.0025 ** (turned.deltaY * lines), place(turned)[0]);
    else pan(((turned.deltaX || turned.deltaY) * lines) / width());
  }, { passive: false });
};
