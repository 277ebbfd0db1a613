// A flame graph: who called whom on the host, a frame as wide as its time. Of a trace its calls; of a run the lines
// in which the hook's sampler found the training thread.
//
// A frame is {name, value, self, calls, parent, depth}; values add up to those of the caller, or less.
"use strict";

const kFrameHeight = 22;
const kNarrowest = 1.5; // pixels; narrower ones are in the table

function frameOf([name, value, self, calls], parent, depth) {
  const frame = { name, value, self, parent, depth };
  frame.calls = calls.map((call) => frameOf(call, frame, depth + 1));
  return frame;
}

// share > function > line, of samples.
function framesOfLines(rank) {
  const groups = new Map();
  const add = (path, part) => {
    let calls = groups;
    path.forEach((name, i) => {
      if (!calls.has(name)) calls.set(name, { part: 0, own: 0, calls: new Map() });
      const group = calls.get(name);
      group.part += part;
      if (i + 1 === path.length) group.own += part;
      calls = group.calls;
    });
  };
  for (const line of rank.hot_lines)
    add([lookOf(line.share).label, line.function || line.file, `${placeText(line)} ${line.text}`.trim()], line.part);
  const listOf = (calls) =>
    [...calls].map(([name, group]) => [name, group.part, group.own, listOf(group.calls)]).sort((a, b) => b[1] - a[1]);
  const calls = listOf(groups);
  const all = calls.reduce((sum, call) => sum + call[1], 0);
  return frameOf([`rank ${rank.rank}`, all, 0, calls], null, 0);
}

function everyFrame(frame) {
  return [frame, ...frame.calls.flatMap(everyFrame)];
}

// By name: recursion counts once.
function sumsByName(root) {
  const sums = new Map();
  const add = (frame, callers) => {
    const sum = sums.get(frame.name) || { name: frame.name, total: 0, self: 0 };
    sum.self += frame.self;
    if (!callers.has(frame.name)) sum.total += frame.value;
    sums.set(frame.name, sum);
    for (const call of frame.calls) add(call, new Set(callers).add(frame.name));
  };
  for (const call of root.calls) add(call, new Set());
  return [...sums.values()].sort((a, b) => b.self - a.self);
}

class Flame {
  constructor(root, format) {
    this.root = this.shown = this.focused = root;
    this.format = format;
    this.wanted = "";
    this.picture = el("div", { class: "flame", role: "group", "aria-label": "Flame graph: arrow keys, Enter, Escape" });
    this.picture.addEventListener("keydown", (event) => this.onKey(event));
    this.says = el("output", { class: "under" });
    this.found = el("output", {});
    this.buttons = new Map();
  }

  describe(frame) {
    const part = percent(frame.value / (this.root.value || 1));
    return `${frame.name}: ${this.format(frame.value)} (${part}), of it ${this.format(frame.self)} itself`;
  }

  // Frames of the one that is shown, above them its callers over the whole width.
  layout() {
    const placed = [];
    for (let up = this.shown.parent; up; up = up.parent) placed.unshift({ frame: up, left: 0, width: 1 });
    const place = (frame, left, width) => {
      placed.push({ frame, left, width });
      for (const call of frame.calls) {
        const part = frame.value ? (width * call.value) / frame.value : 0;
        place(call, left, part);
        left += part;
      }
    };
    place(this.shown, 0, 1);
    return placed;
  }

  draw(hadFocus = this.picture.contains(document.activeElement)) {
    const room = this.picture.clientWidth;
    if (!room) return;
    const placed = this.layout().filter((each) => each.width * room >= kNarrowest);
    this.buttons = new Map(placed.map((each) => [each.frame, this.button(each)]));
    this.picture.style.height = kFrameHeight * (1 + Math.max(...placed.map((each) => each.frame.depth))) + "px";
    this.picture.replaceChildren(...this.buttons.values());
    this.focus(this.buttons.has(this.focused) ? this.focused : this.shown, hadFocus);
  }

  button({ frame, left, width }) {
    const matches = this.wanted && frame.name.toLowerCase().includes(this.wanted);
    return el(
      "button",
      {
        type: "button",
        tabindex: -1,
        title: this.describe(frame),
        class: matches ? "found" : frame.depth < this.shown.depth ? "caller" : `tone${frame.depth % 3}`,
        style: { left: 100 * left + "%", width: 100 * width + "%", top: frame.depth * kFrameHeight + "px" },
        onclick: () => this.zoom(frame),
        onfocus: () => this.focus(frame),
        onmouseenter: () => (this.says.textContent = this.describe(frame)),
      },
      frame.name,
    );
  }

  focus(frame, really) {
    const before = this.buttons.get(this.focused);
    if (before) before.tabIndex = -1;
    this.focused = frame;
    const button = this.buttons.get(frame);
    button.tabIndex = 0;
    if (really && document.activeElement !== button) button.focus({ preventScroll: true });
    if (document.activeElement === button) this.says.textContent = this.describe(frame);
  }

  zoom(frame) {
    this.shown = this.focused = frame;
    this.draw(true);
  }

  onKey(event) {
    const { focused } = this;
    const siblings = focused.parent ? focused.parent.calls.filter((each) => this.buttons.has(each)) : [focused];
    const at = siblings.indexOf(focused);
    const next = {
      ArrowUp: focused.parent,
      ArrowDown: focused.calls.find((call) => this.buttons.has(call)),
      ArrowLeft: siblings[at - 1],
      ArrowRight: siblings[at + 1],
    };
    if (event.key === "Escape") this.zoom(this.root);
    else if (event.key in next) {
      if (next[event.key]) this.focus(next[event.key], true);
    } else return;
    event.preventDefault();
  }

  // Matches within matches count once.
  search(text) {
    this.wanted = text.trim().toLowerCase();
    const sum = (frame) =>
      frame.name.toLowerCase().includes(this.wanted)
        ? frame.value
        : frame.calls.reduce((all, call) => all + sum(call), 0);
    this.found.textContent = this.wanted ? `${percent(sum(this.root) / (this.root.value || 1))} of all` : "";
    this.draw();
  }

  table() {
    const columns = [
      { label: "self", class: "number", key: (each) => each.self, cell: (each) => this.format(each.self) },
      { label: "total", class: "number", key: (each) => each.total, cell: (each) => this.format(each.total) },
      {
        label: "frame",
        class: "code",
        least: true,
        key: (each) => each.name,
        cell: (each) => el("div", { class: "wrap" }, each.name),
      },
    ];
    return sortableTable(columns, sumsByName(this.root), (each) => each.name);
  }
}

function flameRoots() {
  if ((data.host_stacks || []).length)
    return {
      format: duration,
      roots: data.host_stacks.map((stack) => frameOf(stack, null, 0)),
      says: "time of the host's calls",
    };
  const ranks = data.ranks.filter((rank) => rank.hot_lines.length);
  return {
    format: percent,
    roots: ranks.map(framesOfLines),
    says: "of the samples of the training thread, its busiest lines",
  };
}

function flameSection() {
  const { format, roots, says } = flameRoots();
  if (!roots.length) return null;
  const box = el("div");
  const show = (index) => {
    flame = new Flame(roots[index], format);
    const search = el("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search the flame graph",
      oninput: (event) => flame.search(event.target.value),
    });
    box.replaceChildren(
      el(
        "div",
        { class: "card flamebox" },
        el(
          "div",
          { class: "tools still" },
          search,
          flame.found,
          el("span", { class: "hint" }, "Click to zoom; Escape shows all."),
        ),
        flame.picture,
        flame.says,
      ),
      el("details", { class: "more" }, el("summary", {}, "The flame graph as a table"), flame.table()),
    );
  };
  show(0);
  const change = (index) => {
    show(index);
    flame.draw();
  };
  return el(
    "section",
    { id: "flame" },
    el("h2", {}, "Flame graph", el("small", {}, says)),
    roots.length > 1
      ? el(
          "div",
          { class: "tools still" },
          chooser(
            "Stacks of",
            roots.map((root, index) => [index, root.name]),
            change,
          ),
        )
      : "",
    box,
  );
}
