// What stands below the charts: ranks, lines, kernels, operators, notes, facts, and the report as text.

// The ranks of each machine, a square each: the darker, the more of its step is what was chosen.
function nodesSection() {
  if (!report.nodes) return null;
  const shown = new Map(report.ranks.filter((rank) => rank.shares).map((rank) => [rank.rank, rank.shares]));
  const looks = data.palette.filter((look) => [...shown.values()].some((shares) => shares[look.name] > 0));
  const spread = (name) => {
    const all = [...shown.values()].map((shares) => shares[name] || 0);
    return Math.max(...all) - Math.min(...all);
  };
  const body = el("tbody", {});
  const draw = (name) => {
    const most = Math.max(1e-9, ...[...shown.values()].map((shares) => shares[name] || 0));
    const square = (rank) => {
      const share = (shown.get(rank) || {})[name] || 0;
      return el("span", {
        title: `rank ${rank}: ${percent(share)}`,
        style: { background: `color-mix(in srgb, var(--share-${name}) ${(100 * share) / most}%, var(--line))` },
      });
    };
    const row = (node) =>
      el(
        "tr",
        {},
        el("td", {}, node.name, node.cut_off ? el("small", {}, " cut off") : ""),
        el("td", { class: "squares" }, el("div", {}, node.ranks.map(square))),
        el("td", { class: "number" }, node.shares ? percent(node.shares[name] || 0) : ""),
        el("td", { class: "number" }, node.mean_step_ns ? duration(node.mean_step_ns) : ""),
        el(
          "td",
          { class: "grow soft" },
          (node.differs || []).map((each) => `${each.what} ${each.here}, elsewhere ${each.elsewhere}`).join("; "),
        ),
      );
    body.replaceChildren(...report.nodes.map(row));
  };
  const first = looks.length ? looks.reduce((a, b) => (spread(b.name) > spread(a.name) ? b : a)).name : "";
  draw(first);
  const choices = looks.map((look) => [look.name, look.label]);
  choices.sort(([a], [b]) => (b === first) - (a === first));
  const titles = ["machine", "ranks", "mean", "step", "what differs there"];
  return el(
    "section",
    { id: "nodes" },
    el("h2", {}, "Machines", el("small", {}, "a square is a rank: the stronger, the more of its step")),
    choices.length > 1 ? el("div", { class: "tools still" }, chooser("Share", choices, draw)) : "",
    el(
      "div",
      { class: "card scroll" },
      el(
        "table",
        { class: "heat" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            titles.map((title) => el("th", {}, title)),
          ),
        ),
        body,
      ),
    ),
  );
}

// Of the ranks of many machines, the squares above show as much.
const kRankBars = 64;

function ranksSection() {
  const ranks = report.ranks.filter((rank) => rank.shares);
  if (ranks.length < 2 || (report.nodes && ranks.length > kRankBars)) return null;
  const longest = Math.max(...ranks.map((rank) => rank.mean_step_ns));
  return el(
    "section",
    { id: "ranks" },
    el("h2", {}, "Ranks", el("small", {}, "each bar is as long as the rank's step")),
    el(
      "div",
      { class: "card scroll" },
      el(
        "table",
        {},
        ranks.map((rank) =>
          el(
            "tr",
            {},
            el("td", { class: "number" }, rank.rank),
            el("td", { class: "soft" }, rank.device || ""),
            el(
              "td",
              { class: "grow" },
              el(
                "div",
                { style: { width: (100 * rank.mean_step_ns) / longest + "%" } },
                shareBar(data.palette, rank.shares, true),
              ),
            ),
            el("td", { class: "number" }, duration(rank.mean_step_ns)),
          ),
        ),
      ),
    ),
  );
}

function linesSection() {
  const rank = data.ranks.find((each) => each.hot_lines.length);
  if (!rank) return null;
  const top = rank.hot_lines[0].part;
  const rows = rank.hot_lines.map((line) =>
    el(
      "tr",
      {},
      el("td", { class: "number" }, percent(line.part)),
      el(
        "td",
        { class: "part" },
        el("div", {
          title: lookOf(line.share).meaning,
          style: { width: (100 * line.part) / top + "%", background: `var(--share-${lookOf(line.share).name})` },
        }),
      ),
      el("td", { class: "soft" }, lookOf(line.share).label),
      el("td", { class: "code" }, el("span", { title: line.file }, placeText(line)), line.text || line.function || ""),
    ),
  );
  return el(
    "section",
    { id: "lines" },
    el(
      "h2",
      {},
      "Source lines",
      el(
        "small",
        {},
        "where the training thread spent its time" + (data.ranks.length > 1 ? `, rank ${rank.rank}` : ""),
      ),
    ),
    el("div", { class: "card scroll" }, el("table", {}, rows)),
  );
}

function kernelsSection() {
  const ranks = data.ranks.filter((each) => each.kernels.length);
  if (!ranks.length) return null;
  const box = el("div");
  const show = (rank) => {
    const top = rank.kernels[0].part;
    box.replaceChildren(
      sortableTable(
        [
          { label: "share", class: "number", key: (kernel) => kernel.part, cell: (kernel) => percent(kernel.part) },
          {
            label: "",
            class: "part",
            cell: (kernel) =>
              partBar(
                kernel.part,
                top,
                "of the time of all kernels",
                `var(--share-${kernel.class === "comm" ? "comm_exposed" : "compute"})`,
              ),
          },
          { label: "launches", class: "number", key: (kernel) => kernel.count, cell: (kernel) => count(kernel.count) },
          {
            label: "mean",
            class: "number",
            key: (kernel) => kernel.mean_ns,
            cell: (kernel) => duration(kernel.mean_ns),
          },
          {
            label: "class",
            class: "soft",
            least: true,
            key: (kernel) => kernel.class,
            cell: (kernel) => kernel.class.replaceAll("_", " "),
          },
          {
            label: "kernel",
            class: "code",
            least: true,
            key: (kernel) => kernel.name,
            cell: (kernel) =>
              el(
                "div",
                { class: "wrap", title: kernel.name },
                kernel.name.length > 90 ? kernel.name.slice(0, 90) + "…" : kernel.name,
              ),
          },
        ],
        rank.kernels,
        (kernel) => kernel.name + " " + kernel.class,
      ),
    );
  };
  show(ranks[0]);
  return el(
    "section",
    { id: "kernels" },
    el("h2", {}, "Kernels", el("small", {}, "by their part of the time of all kernels")),
    ranks.length > 1 ? el("div", { class: "tools still" }, rankChooser(ranks, show)) : "",
    box,
  );
}

// Of a training on the CPU, in the few steps that a profiler saw.
function operatorsSection() {
  const seen = report.device_window;
  if (!seen || !(seen.operators || []).length) return null;
  const top = seen.operators[0].share;
  const table = sortableTable(
    [
      { label: "share", class: "number", key: (each) => each.share, cell: (each) => percent(each.share) },
      {
        label: "",
        class: "part",
        cell: (each) => partBar(each.share, top, "of the time of these steps", "var(--share-compute)"),
      },
      { label: "calls", class: "number", key: (each) => each.count, cell: (each) => count(each.count) },
      { label: "time", class: "number", key: (each) => each.ns, cell: (each) => duration(each.ns) },
      {
        label: "GFLOP/s",
        class: "number",
        key: (each) => each.flops_per_s || 0,
        cell: (each) => (each.flops_per_s === undefined ? "" : count(each.flops_per_s / 1e9)),
      },
      {
        label: "operator",
        class: "code",
        least: true,
        key: (each) => each.name,
        cell: (each) => el("div", { class: "wrap" }, each.name),
      },
    ],
    seen.operators,
    (each) => each.name,
  );
  const last = seen.first_step + seen.steps - 1;
  const steps = seen.steps === 1 ? `step ${last}` : `steps ${seen.first_step} to ${last}`;
  const of = `of a step on the CPU, under a profiler in ${steps}`;
  return el("section", { id: "operators" }, el("h2", {}, "Operators", el("small", {}, of)), table);
}

function notesSection() {
  const list = (title, items) =>
    items.length ? el("div", { class: "card" }, el("h3", {}, title), el("ul", { class: "notes" }, items)) : null;
  const boxes = [
    list(
      "Would not help",
      report.would_not_help.map((note) =>
        el("li", {}, note.what, el("span", { class: "soft" }, note.why ? ": " + note.why : "")),
      ),
    ),
    list(
      "Not judged",
      report.not_judged.map((note) =>
        el(
          "li",
          {},
          note.id,
          el(
            "span",
            { class: "soft" },
            (note.why ? ": " + note.why : "") + (note.needs ? "; needs " + note.needs : ""),
          ),
        ),
      ),
    ),
    list(
      "Judged in part",
      data.caveats.map((text) => el("li", {}, text)),
    ),
    list(
      "Messages",
      data.messages.map((message) =>
        el(
          "li",
          { class: message.severity },
          el(
            "span",
            { class: "soft" },
            (message.t_ms === undefined ? "" : clock(message.t_ms, axis.end / 100, axis.end) + "  ") +
              message.source +
              "  ",
          ),
          message.text,
        ),
      ),
    ),
  ].filter(Boolean);
  return boxes.length
    ? el("section", { id: "notes" }, el("h2", {}, "Also worth knowing"), el("div", { class: "facts" }, boxes))
    : null;
}

function factText(name, value) {
  if (name.endsWith("_bytes") && Number.isFinite(Number(value))) return bytes(Number(value));
  return typeof value === "string" ? value : JSON.stringify(value);
}

function factsSection() {
  const box = (title, entries) => {
    const rows = entries.filter(([, value]) => value !== undefined && value !== "");
    return rows.length
      ? el(
          "div",
          { class: "card" },
          el("h3", {}, title),
          el(
            "table",
            {},
            rows.map(([name, value]) =>
              el(
                "tr",
                {},
                el("td", { title: name }, name.replace(/_bytes$/, "").replaceAll("_", " ")),
                el("td", {}, factText(name, value)),
              ),
            ),
          ),
        )
      : null;
  };
  const boxes = [
    box("Command", [
      ["command", data.command],
      ["directory", data.directory],
      ["exit status", report.exit_status],
      ["recorded in", report.source],
    ]),
    box("Training", Object.entries(report.facts)),
    ...data.ranks.slice(0, 1).flatMap((rank) =>
      rank.loaders.map((loader) =>
        box(
          "Data loader" + (loader.where ? " at " + loader.where : ""),
          Object.entries(loader).filter(([name]) => name !== "where"),
        ),
      ),
    ),
    box("Machine", Object.entries(report.machine)),
    data.stages.length > 1
      ? box(
          "Stages",
          data.stages.map((stage) => [stage.name, stage.text]),
        )
      : null,
  ].filter(Boolean);
  return el("section", { id: "facts" }, el("h2", {}, "The run"), el("div", { class: "facts" }, boxes));
}

function textSection() {
  return el(
    "details",
    { class: "more" },
    el("summary", {}, "This report as text"),
    el("pre", { class: "text-report", tabindex: 0 }, data.text),
  );
}
