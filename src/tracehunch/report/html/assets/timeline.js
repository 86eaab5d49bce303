// The timeline: what keys, pointer, search and the cards of findings do to what is in view.
// A page may have several traces: one at a time is shown, started anew when it is chosen.
(() => {
  const traces = tracehunch.data("timeline");
  const box = document.getElementById("tl");
  if (!traces || !box) return;
  if (typeof DecompressionStream === "undefined") {
    document.getElementById("tl-old").hidden = false;
    return;
  }
  const by = (id) => document.getElementById("tl-" + id);
  const [canvas, frame, details, found, status, tip, search, picker] =
    ["canvas", "lanes", "details", "found", "status", "tip", "search", "trace"].map(by);
  const panes = [by("host"), by("gpu")];
  let stopper = null, current = -1, shown = null;

  const choose = async (at) => {
    if (at === current) return shown;
    if (stopper) stopper.abort();
    stopper = new AbortController();
    current = at;
    delete box.dataset.ready;
    box.hidden = false;
    if (picker) picker.selectedIndex = at;
    const model = await tracehunch.timeline.load(traces[at]);
    if (at === current) shown = begin(model, stopper.signal);
    return shown;
  };

  const begin = (model, signal) => {
    const { data, start, dur } = model;
    const on = (target, name, act, options) => target.addEventListener(name, act, { ...options, signal });
    const view = { from: 0, to: data.span, selected: -1, matches: [], strong: null, flags: null, pointer: null };
    let width = 1, sorted = true, what = "";
    view.x = (time) => ((time - view.from) / (view.to - view.from)) * width;
    view.time = (px) => view.from + (px / width) * (view.to - view.from);
    const painter = tracehunch.timeline.painter(canvas, model, panes);
    const words = tracehunch.timeline.words(model, (one) => {
      select(one);
      frame.focus({ preventScroll: true });
    });

    let waiting = false;
    const draw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        if (signal.aborted) return;
        painter.paint(view);
        frame.dataset.view = [view.from, view.to].map((one) => one.toFixed(1)).join(" ");
      });
    };

    // Lanes: buttons that fold, one above each; panes as high as they need to be, within reason.
    const arrange = () => {
      model.arrange();
      const most = [Math.max(innerHeight * 0.45, 180), Math.max(innerHeight * 0.32, 120)];
      panes.forEach((pane, at) => {
        pane.style.height = Math.min(model.heights[at], most[at]) + "px";
        pane.hidden = !model.heights[at];
        pane.firstElementChild.style.height = model.heights[at] + "px";
      });
      for (const lane of model.lanes) {
        lane.button.style.top = lane.top + "px";
        lane.button.setAttribute("aria-expanded", String(!lane.folded));
      }
      refresh();
    };
    panes.forEach((pane) => pane.firstElementChild.replaceChildren());
    for (const lane of model.lanes) {
      const n = lane.lines.reduce((sum, line) => sum + line.to - line.from, 0);
      lane.button = words.element("button", lane.label, "lane");
      lane.button.type = "button";
      lane.button.append(words.element("span", " " + n.toLocaleString("en") + (n === 1 ? " event" : " events"), "dim"));
      on(lane.button, "click", () => {
        lane.folded = !lane.folded;
        arrange();
      });
      panes[Number(lane.gpu)].firstElementChild.append(lane.button);
    }
    const refresh = () => {
      painter.colours();
      width = painter.size();
      by("legend").replaceChildren(...words.legend(painter));
      draw();
    };

    const move = (from, to) => {
      const least = Math.min(20, data.span);
      const span = Math.min(Math.max(to - from, least), data.span);
      view.from = Math.min(Math.max(from, 0), data.span - span);
      view.to = view.from + span;
      tip.hidden = true;
      draw();
    };
    const zoom = (factor, px = view.pointer === null ? width / 2 : view.pointer) => {
      const at = view.time(px);
      move(at - (at - view.from) * factor, at + (view.to - at) * factor);
    };
    const pan = (part) => move(view.from + (view.to - view.from) * part, view.to + (view.to - view.from) * part);
    const fit = (from, to) => {
      const margin = Math.max((to - from) * 0.1, 10);
      move(from - margin, to + margin);
    };
    const reveal = (one) => {
      const { lane } = model.line(one);
      if (lane.folded) {
        lane.folded = false;
        arrange();
      }
      if (start[one] > view.to || model.end(one) < view.from) {
        const span = view.to - view.from;
        move(start[one] - span / 2, start[one] + span / 2);
      }
      const pane = panes[Number(lane.gpu)], y = model.line(one).y;
      if (y < pane.scrollTop || y + model.ROW > pane.scrollTop + pane.clientHeight)
        pane.scrollTop = Math.max(y - pane.clientHeight / 2, 0);
    };
    const select = (one) => {
      view.selected = one;
      if (one >= 0) {
        reveal(one);
        details.replaceChildren(...words.details(one));
        if (view.matches.length < 5000) inOrder();
        const at = view.matches.length < 5000 ? view.matches.indexOf(one) : -1;
        status.textContent = words.aloud(one) + (at < 0 ? "" : ", " + what + " " + (at + 1) + " of " + view.matches.length);
      } else {
        details.replaceChildren();
        status.textContent = "";
      }
      draw();
    };

    // Matches: of the search, or the evidence of a finding. N and P go through them by time.
    const mark = (events, called) => {
      what = called;
      view.matches = events;
      sorted = false;
      view.strong = null;
      if (!events) view.matches = [];
      else {
        view.flags = new Uint8Array(start.length);
        for (const one of events) view.flags[one] = 1;
        view.strong = Uint32Array.from(events);
      }
      draw();
    };
    const step = (way) => {
      if (!view.matches.length) return;
      inOrder();
      const n = view.matches.length, at = view.matches.indexOf(view.selected);
      if (at >= 0) return select(view.matches[(at + way + n) % n]);
      const when = view.selected < 0 ? view.from : start[view.selected];
      const next = view.matches.findIndex((one) => start[one] >= when);
      select(view.matches[way > 0 ? Math.max(next, 0) : (next < 0 ? n - 1 : (next - 1 + n) % n)]);
    };
    const inOrder = () => {
      if (!sorted) view.matches = Array.from(view.matches).sort((a, b) => start[a] - start[b] || a - b);
      sorted = true;
    };
    const lookFor = () => {
      const wanted = search.value.trim().toLowerCase();
      if (!wanted) {
        found.textContent = "";
        mark(null, "");
        return;
      }
      const fits = (texts) => Uint8Array.from(texts, (text) => text.toLowerCase().includes(wanted));
      const [names, modules] = [fits(data.names), fits(data.modules)];
      const events = [];
      for (let i = 0; i < start.length; i++) if (names[model.name[i]] || modules[model.module[i]]) events.push(i);
      mark(events, "match");
      found.textContent = events.length.toLocaleString("en") + (events.length === 1 ? " match" : " matches") + " of names and modules";
    };
    const clear = () => {
      search.value = "";
      lookFor();
      select(-1);
    };
    const showEvidence = (key, called) => {
      const known = data.evidence[key];
      search.value = "";
      mark(known.events, "evidence of " + called + ",");
      const left = known.all - known.events.length;
      found.textContent =
        known.events.length.toLocaleString("en") + (known.events.length === 1 ? " event" : " events") + " of " + called + " marked" +
        (left ? "; " + left.toLocaleString("en") + " more lie outside of what is shown" : "");
      fit(known.first, known.last);
      const here = known.events.filter((one) => start[one] >= known.first && start[one] <= known.last);
      const work = here.filter((one) => model.gpu[one] >= 0);
      select((work.length ? work : here).reduce((a, b) => (start[b] < start[a] ? b : a)));
      box.scrollIntoView({ block: "start" });
      frame.focus({ preventScroll: true });
    };

    // Keys, as in Perfetto.
    const first = () => {
      const line = model.lines.find((one) => one.y >= 0 && start[model.firstAfter(one, view.from)] <= view.to);
      return line ? model.firstAfter(line, view.from) : 0;
    };
    const along = (way) => {
      if (view.selected < 0) return select(first());
      const line = model.line(view.selected);
      select(Math.min(Math.max(view.selected + way, line.from), line.to - 1));
    };
    const across = (way) => {
      if (view.selected < 0) return select(first());
      for (let at = model.place(view.selected) + way; model.lines[at]; at += way) {
        if (model.lines[at].y < 0) continue;
        const there = model.firstAfter(model.lines[at], start[view.selected]);
        return select(Math.min(there, model.lines[at].to - 1));
      }
    };
    const otherEnd = () => {
      const one = view.selected;
      if (one < 0) return;
      const other = model.launch[one] >= 0 ? model.launch[one] : model.launched(one)[0];
      if (other !== undefined) select(other);
    };
    const keys = {
      w: () => zoom(1 / 1.3), s: () => zoom(1.3), a: () => pan(-0.12), d: () => pan(0.12),
      f: () => view.selected >= 0 && fit(start[view.selected], model.end(view.selected)),
      0: () => move(0, data.span), n: () => step(1), p: () => step(-1), g: otherEnd, escape: clear,
      "/": () => search.focus(), enter: () => details.focus(),
      arrowleft: () => along(-1), arrowright: () => along(1), arrowup: () => across(-1), arrowdown: () => across(1),
    };
    on(frame, "keydown", (pressed) => {
      const key = pressed.key.toLowerCase(), act = keys[key];
      if (!act || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return;
      if (key === "enter" && pressed.target !== frame) return; // a lane's button
      pressed.preventDefault();
      act();
    });
    on(details, "keydown", (pressed) => {
      if (pressed.key === "Escape") frame.focus();
    });
    on(search, "input", lookFor);
    on(search, "keydown", (pressed) => {
      if (pressed.key === "Enter") step(pressed.shiftKey ? -1 : 1);
      if (pressed.key === "Escape") {
        clear();
        frame.focus();
      }
    });
    on(by("in"), "click", () => zoom(1 / 1.6, width / 2));
    on(by("out"), "click", () => zoom(1.6, width / 2));
    on(by("all"), "click", () => move(0, data.span));
    on(by("next"), "click", () => step(1));

    tracehunch.timeline.pointer({ on, frame, panes, tip, model, words, view, width: () => width, move, zoom, pan, select });
    for (const pane of panes) on(pane, "scroll", draw);

    tracehunch.onTheme.splice(0, tracehunch.onTheme.length, refresh);
    on(window, "resize", arrange);
    clear();
    arrange();
    box.dataset.ready = "yes";
    return { showEvidence };
  };

  // A finding's evidence, from its card: the trace is chosen that it is of.
  for (const card of document.querySelectorAll("[data-evidence]")) {
    const at = card.dataset.trace === undefined ? 0 : traces.findIndex((one) => one.trace === card.dataset.trace);
    const known = traces[at] && traces[at].evidence[card.dataset.evidence];
    if (!known) continue;
    const button = document.createElement("button");
    const left = known.all - known.events.length;
    button.type = "button";
    button.className = "evidence only-screen";
    button.disabled = !known.events.length;
    button.textContent = !known.events.length
      ? "Its evidence lies outside of what the timeline shows"
      : "Show in the timeline" + (left ? " (" + known.events.length.toLocaleString("en") + " of " + known.all.toLocaleString("en") + " events)" : "");
    button.addEventListener("click", async () => (await choose(at)).showEvidence(card.dataset.evidence, card.dataset.called));
    card.append(button);
  }
  if (picker) picker.addEventListener("change", () => choose(picker.selectedIndex));
  choose(0);
})();
