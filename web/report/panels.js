// Which panels there are, given the series and step windows that were recorded.
"use strict";

const kLineColors = ["var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)"];
const kRoleColors = { loader: "var(--share-data_wait)", trainer: "var(--share-compute)", other: "var(--faint)" };

// Quantities that share a scale. `per` is the label whose values (several GPUs, several disks) are drawn together
// unless one of them is chosen; `ceiling` is the series that gives the top of the scale.
const kPanels = [
  {
    id: "gpu",
    title: "GPU activity",
    max: 1,
    per: "gpu",
    names: {
      gpu_utilization: "some kernel ran (utilisation)",
      gpu_sm_active: "SMs active",
      gpu_tensor_active: "tensor cores",
      gpu_dram_active: "memory bandwidth",
    },
  },
  {
    id: "gpu-memory",
    title: "GPU memory",
    per: "gpu",
    ceiling: "gpu_memory_total",
    height: 92,
    names: { gpu_memory_used: "used" },
  },
  { id: "gpu-power", title: "GPU power, W", per: "gpu", height: 92, names: { gpu_power: "drawn" } },
  {
    id: "cpu",
    title: "CPU",
    max: 1,
    names: { cpu_utilization: "in use", cpu_iowait: "waiting for the disk", cpu_system: "in the kernel" },
  },
  { id: "process-cpu", title: "CPU by process, in cores", roles: true, names: { process_cpu: "" } },
  { id: "memory", title: "Memory", ceiling: "memory_total", names: { memory_used: "in use" } },
  { id: "process-memory", title: "Memory by process", roles: true, height: 92, names: { process_memory: "" } },
  { id: "disk", title: "Disk", per: "device", names: { disk_read: "read", disk_write: "written" } },
  {
    id: "network",
    title: "Network",
    per: "interface",
    height: 92,
    names: { net_receive: "received", net_send: "sent" },
  },
  {
    id: "pressure",
    title: "Share of time with stalled tasks",
    height: 92,
    names: {
      psi_cpu_some: "waiting for a core",
      psi_io_some: "waiting for I/O",
      psi_memory_some: "waiting for memory",
    },
  },
];

function seriesNamed(data, name) {
  return data.series.filter((series) => series.name === name);
}

function isFlatZero(series) {
  return series.v.every((value) => value === 0);
}

function lineOf(series, label, color) {
  return { label, color, t: series.t, v: series.v, key: series.key, unit: series.unit };
}

// The lines of one quantity: one per role, or one for all devices together, with the range they span.
function linesOf(data, kind, name, label, color, chosen) {
  let list = seriesNamed(data, name);
  if (kind.per && chosen[kind.per] !== undefined)
    list = list.filter((series) => series.labels[kind.per] === chosen[kind.per]);
  if (!list.length) return [];
  if (kind.roles) return linesByRole(list, data.end_ms);
  if (kind.per === "device" || kind.per === "interface")
    list = list.filter((series) => !isFlatZero(series)).slice(0, 8);
  if (!list.length) return [];
  if (list.length === 1) return [lineOf(list[0], label, color)];
  const merged = together(list, data.end_ms);
  return [
    {
      ...merged,
      label,
      color,
      merged: list.length,
      key: name,
      keys: list.map((series) => series.key),
      unit: list[0].unit,
    },
  ];
}

function linesByRole(list, end) {
  const roles = [...new Set(list.map((series) => series.labels.role || "other"))].sort();
  return roles.map((role) => {
    const of = list.filter((series) => (series.labels.role || "other") === role);
    const label = { loader: "loader workers", trainer: "training process" }[role] || role;
    const color = kRoleColors[role] || "var(--faint)";
    if (of.length === 1) return lineOf(of[0], label, color);
    return {
      ...together(of, end),
      label: `${label}, mean and range of ${of.length}`,
      color,
      key: of[0].name,
      unit: of[0].unit,
    };
  });
}

// The total, if it was recorded: 31 GB say little without the 141 GB.
function ceilingOf(data, kind) {
  const total = kind.ceiling ? seriesNamed(data, kind.ceiling) : [];
  return total.length ? Math.max(...total.flatMap((series) => series.v)) : undefined;
}

function hardwarePanels(data, chosen) {
  const specs = [];
  for (const kind of kPanels) {
    const lines = Object.entries(kind.names).flatMap(([name, label], index) =>
      linesOf(data, kind, name, label, kLineColors[index], chosen),
    );
    if (!lines.length) continue;
    const of = kind.per === "gpu" && chosen.gpu !== undefined ? ` ${chosen.gpu}` : "";
    const merged = lines[0].merged ? `: mean and range of ${lines[0].merged}` : "";
    specs.push({
      id: kind.id,
      title: kind.title + of + merged,
      unit: lines[0].unit,
      max: kind.max || ceilingOf(data, kind),
      height: kind.height,
      lines,
    });
  }
  return specs;
}

// What a finding names matters most, then what was nearly used up.
function weightOf(report, name) {
  const isOf = (key) => key.split("{")[0] === name;
  if (report.findings.some((finding) => finding.evidence.some((evidence) => isOf(evidence.series || "")))) return 2;
  return Object.entries(report.resources).some(([key, each]) => isOf(key) && each.unit === "ratio" && each.p95 >= 0.9)
    ? 1
    : 0;
}

// Everything else that was recorded, one panel per quantity; what matters for the verdict first.
function otherPanels(data) {
  const shown = new Set(["logged", ...kPanels.flatMap((kind) => [...Object.keys(kind.names), kind.ceiling])]);
  const names = [...new Set(data.series.map((series) => series.name))]
    .filter((name) => !shown.has(name))
    .sort()
    .sort((a, b) => weightOf(data.report, b) - weightOf(data.report, a));
  return names.flatMap((name, index) => {
    const list = seriesNamed(data, name);
    if (list.every(isFlatZero)) return [];
    const lines =
      list.length <= 6
        ? list.map((series, i) => lineOf(series, Object.values(series.labels).join(" ") || "all", kLineColors[i % 6]))
        : [
            {
              ...together(list, data.end_ms),
              label: `mean and range of ${list.length}`,
              color: kLineColors[0],
              key: name,
            },
          ];
    return [
      {
        id: "other-" + index,
        title:
          name.replaceAll("_", " ") +
          ({ ratio: "", bytes: "", "bytes/s": "", Hz: "", count: "" }[list[0].unit] ?? ", " + list[0].unit),
        unit: list[0].unit,
        height: 80,
        lines,
        max: list[0].unit === "ratio" ? 1 : undefined,
      },
    ];
  });
}

// Ranks that wait for each other have steps of the same length; what tells them apart is the part of a step in which a
// rank does not wait for others. Of many ranks, the slowest are drawn, and the others as a range.
const kRanksDrawn = 4;

function rankPanel(data) {
  const ranks = data.ranks
    .filter((rank) => rank.windows.t.length > 1)
    .map((rank) => {
      const { t, width, steps, shares } = rank.windows;
      const v = width.map((ms, i) => (ms / steps[i]) * 1e6 * (1 - ((shares.comm_exposed || [])[i] || 0)));
      return {
        label: `rank ${rank.rank}`,
        key: `rank ${rank.rank}`,
        t: t.map((begin, i) => begin + width[i]),
        v,
        mean: v.reduce((sum, ns) => sum + ns, 0) / v.length,
      };
    });
  if (ranks.length < 2) return [];
  ranks.sort((a, b) => b.mean - a.mean);
  const drawn = ranks.length > kRanksDrawn + 1 ? ranks.slice(0, kRanksDrawn) : ranks;
  const others = ranks.slice(drawn.length);
  const lines = drawn.map((rank, i) => ({ ...rank, color: kLineColors[i % kLineColors.length] }));
  if (others.length)
    lines.push({
      ...together(others, data.end_ms),
      label: `mean and range of ${others.length} others`,
      key: "rank others",
      color: "var(--faint)",
    });
  return [
    {
      id: "own-time",
      title: "A step of each rank without waiting for the others, slowest first",
      unit: "ns",
      lines,
      marks: { warmEnd: data.steady_ms },
    },
  ];
}

// What the script logs itself, on the axis of the throughput, losses first; "train/loss" and "val/loss" in one panel.
const kLoggedPanels = 8;

function loggedKind(name) {
  const plain = name.replace(/^(train|training|val|valid|validation|test|eval)[ _/.-]|[ _/.-](step|epoch)$/gi, "");
  return plain || name;
}

const fourDigits = (value) => String(Number(value.toPrecision(4)));

function loggedPanels(data) {
  const ranks = new Map(data.report.logged?.map((metric) => [metric.name, String(metric.rank)]));
  const kinds = new Map();
  for (const series of seriesNamed(data, "logged")) {
    const name = series.labels.metric;
    if (series.t.length < 2 || ranks.get(name) !== series.labels.rank) continue;
    const kind = loggedKind(name);
    kinds.set(kind, [...(kinds.get(kind) || []), series]);
  }
  return [...kinds]
    .sort(([a], [b]) => b.includes("loss") - a.includes("loss"))
    .slice(0, kLoggedPanels)
    .map(([kind, list], index) => ({
      id: "logged-" + index,
      title: `${kind}, logged by the script`,
      unit: "",
      fits: true,
      text: fourDigits,
      lines: list.slice(0, kLineColors.length).map((series, i) => ({
        ...lineOf(series, series.labels.metric, kLineColors[i]),
        unbroken: true,
      })),
    }));
}

function stepPanels(data, rank) {
  const windows = rank.windows;
  if (!windows.t.length) return [];
  const layers = data.palette
    .filter((look) => windows.shares[look.name])
    .map((look) => ({
      key: look.name,
      label: look.label,
      meaning: look.meaning,
      color: `var(--share-${look.name})`,
      v: windows.shares[look.name],
    }));
  const ends = windows.t.map((t, i) => t + windows.width[i]);
  const known = windows.samples.some((samples) => samples > 0);
  const rate = (known ? windows.samples : windows.steps).map((amount, i) => amount / (windows.width[i] / 1000));
  const unit = known ? "samples/s" : data.step_word + "s/s";
  const marks = { warmEnd: data.steady_ms, meanFrom: data.steady_ms };
  const meanRate = (data.report.throughput || {})[known ? "samples_per_s" : "steps_per_s"];
  const shares = {
    id: "shares",
    title: "Where each step's time goes",
    unit: "ratio",
    max: 1,
    height: 190,
    stack: { t: windows.t, width: windows.width, layers },
    marks,
  };
  if (ends.length < 2) return [shares]; // a single point makes no line
  return [
    shares,
    {
      id: "throughput",
      title: data.ranks.length > 1 ? `Throughput of rank ${rank.rank}` : "Throughput",
      unit,
      lines: [{ label: unit, color: "var(--s1)", t: ends, v: rate, key: "throughput" }],
      marks: {
        ...marks,
        warmLabel: "warm-up",
        mean: meanRate === undefined ? undefined : meanRate / (known ? report.ranks.length : 1),
      },
    },
    {
      id: "step-time",
      title: "Step time",
      unit: "ns",
      lines: [
        {
          label: "mean, and shortest to longest",
          color: "var(--s1)",
          t: ends,
          v: windows.width.map((width, i) => (width / windows.steps[i]) * 1e6),
          lo: windows.min.map((ms) => ms * 1e6),
          hi: windows.max.map((ms) => ms * 1e6),
          key: "step_time",
        },
      ],
      marks,
    },
  ];
}
