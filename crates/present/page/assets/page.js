// Draws the plots of the page from the JSON in it, in place of the still picture. Without it the page says the same.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("curves").textContent);
  const style = getComputedStyle(document.documentElement);
  const ink = (name) => style.getPropertyValue(name).trim();
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const bytes = (n) => {
    if (n == null) return "";
    let unit = 0;
    while (n >= 1024 && unit < 5) { n /= 1024; unit += 1; }
    return (unit === 0 || n >= 100 ? n.toFixed(0) : n.toPrecision(3)) + " " + units[unit];
  };
  const count = (n) => (n == null ? "" : n.toLocaleString("en"));
  const time = (s) => {
    if (s == null) return "";
    if (s < 60) return Number(s.toFixed(data.to - data.from < 5 ? 2 : 1)) + " s";
    if (s < 3600) return Math.floor(s / 60) + " min " + Math.round(s % 60) + " s";
    return Math.floor(s / 3600) + " h " + Math.round((s % 3600) / 60) + " min";
  };
  const binary = (top) => {
    let step = 1;
    while (top / step > 5) step *= 2;
    return step;
  };
  const plots = [];
  let moving = false;
  const axes = (show) => [
    { stroke: ink("--quiet"), grid: { stroke: ink("--line"), width: 1 }, values: (_, ticks) => ticks.map(time), space: 90 },
    {
      stroke: ink("--quiet"), grid: { stroke: ink("--line"), width: 1 }, values: (_, ticks) => ticks.map(show), size: 84,
      splits: (_u, _axis, low, high) => {
        const ticks = [], step = binary(Math.max(high, 1));
        for (let at = 0; at <= high; at += step) ticks.push(at);
        return ticks;
      },
    },
  ];
  const flags = (u) => {
    const context = u.ctx;
    context.save();
    context.strokeStyle = ink("--quiet");
    context.setLineDash([2, 3]);
    for (const [at] of data.flags) {
      const x = u.valToPos(at, "x", true);
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      context.beginPath();
      context.moveTo(x, u.bbox.top);
      context.lineTo(x, u.bbox.top + u.bbox.height);
      context.stroke();
    }
    context.restore();
  };
  const together = (u) => {
    if (moving) return;
    moving = true;
    for (const other of plots) {
      if (other !== u) other.setScale("x", { min: u.scales.x.min, max: u.scales.x.max });
    }
    moving = false;
  };
  const plot = (where, series, table, show, height, top) => {
    const width = () => Math.max(where.clientWidth, 240);
    const u = new uPlot({
      width: width(), height, series, axes: axes(show),
      scales: { x: { time: false, min: data.from, max: data.to }, y: { range: (_u, _low, high) => [0, Math.max(top || 0, high) * 1.05 || 1] } },
      cursor: { sync: { key: "run" }, drag: { x: true, y: false } },
      hooks: { draw: [flags], setScale: [(self, key) => { if (key === "x") together(self); }] },
    }, table, where);
    plots.push(u);
    addEventListener("resize", () => u.setSize({ width: width(), height }));
  };
  document.body.classList.add("live");
  const memory = data.memory;
  if (memory.at.length) {
    // Of the whole stack downwards: what is drawn later lies in front.
    const table = [memory.at], series = [{ label: "at", value: (_, s) => time(s) }];
    for (let n = memory.names.length - 1; n >= 0; n -= 1) {
      table.push(memory.at.map((_, i) => memory.bytes.slice(0, n + 1).reduce((sum, one) => sum + one[i], 0)));
      const own = memory.bytes[n];
      series.push({ label: memory.names[n], stroke: ink("--c" + (n % 10)), fill: ink("--c" + (n % 10)), width: 0, points: { show: false },
        value: (_u, _v, _s, i) => (i == null ? "" : bytes(own[i])) });
    }
    for (const [name, limit] of data.limits) {
      table.push(memory.at.map(() => limit));
      series.push({ label: name, stroke: ink("--limit"), width: 1.5, dash: [6, 4], points: { show: false }, value: () => bytes(limit) });
    }
    plot(document.getElementById("memory-plot"), series, table, bytes, 340, data.top);
  }
  data.counts.forEach((one, n) => {
    const show = one.unit === "bytes" ? bytes : count;
    plot(document.getElementById("count-" + n), [
      { label: "at", value: (_, s) => time(s) },
      { label: one.unit, stroke: ink("--c0"), width: 1.5, points: { show: one.at.length < 2 }, value: (_, v) => show(v) },
    ], [one.at, one.values], show, 160, 0);
  });
  document.getElementById("whole")?.addEventListener("click", () => {
    for (const u of plots) u.setScale("x", { min: data.from, max: data.to });
  });
  document.getElementById("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([document.getElementById("verdict").textContent], { type: "application/json" }));
    link.download = "verdict.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  document.body.dataset.drawn = "yes";
})();
