// Draws `[data-chart]`: lines over time with the limit and marks. The table beside each chart says the same.

import { each } from "./base.js";

const HEIGHT = 210;
const SYNC = "egs";

/** What `var(--name)` is now, in this theme. */
function colour(name) {
  const probe = document.createElement("i");
  probe.className = `probe ${name}`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const zone = document.documentElement.dataset.times === "local" ? undefined : "UTC";
const DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: zone });
const TIME = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone });
const DAY_S = 86400;

/** `Nov 21, 08:00`, as everywhere on the pages. */
const spoken = (at) => `${DAY.format(at * 1000)}, ${TIME.format(at * 1000)}`;

/** Marks of the same instant in one text. */
function grouped(marks) {
  const found = new Map();
  for (const [at, what] of marks) found.set(at, [...new Set([...(found.get(at) ?? []), what])]);
  return [...found].sort(([one], [other]) => one - other);
}

function marked(data, bad) {
  return {
    hooks: {
      draw: (plot) => {
        const { ctx } = plot;
        const { left, top, width, height } = plot.bbox;
        ctx.save();
        ctx.strokeStyle = bad;
        ctx.fillStyle = bad;
        ctx.lineWidth = devicePixelRatio;
        if (data.limit !== null) {
          const y = Math.round(plot.valToPos(data.limit, "y", true));
          if (y >= top && y <= top + height) {
            ctx.setLineDash([6, 4]);
            ctx.beginPath();
            ctx.moveTo(left, y);
            ctx.lineTo(left + width, y);
            ctx.stroke();
          }
        }
        ctx.setLineDash([2, 3]);
        ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
        let free = left;
        for (const [at, all] of grouped(data.marks)) {
          const what = all.join(", ");
          const x = Math.round(plot.valToPos(at, "x", true));
          if (x < left || x > left + width) continue;
          ctx.beginPath();
          ctx.moveTo(x, top);
          ctx.lineTo(x, top + height);
          ctx.stroke();
          if (x >= free) {
            const size = ctx.measureText(what).width + 8;
            const fits = x + size < left + width;
            ctx.textAlign = fits ? "left" : "right";
            ctx.fillText(what, fits ? x + 3 : x - 3, top + 11 * devicePixelRatio);
            free = fits ? x + size : x;
          }
        }
        ctx.restore();
      },
    },
  };
}

function draw(place) {
  if (place.firstChild || !place.dataset.chart) return;
  const data = JSON.parse(place.dataset.chart);
  const [soft, line, bad] = ["soft", "line", "bad"].map((name) => colour(`c-${name}`));
  const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  const highest = Math.max(data.limit ?? 0, ...data.series.flatMap((one) => one.values));
  const plot = new uPlot(
    {
      width: place.clientWidth || 300,
      height: HEIGHT,
      tzDate: (at) => (zone ? uPlot.tzDate(new Date(at * 1000), "Etc/UTC") : new Date(at * 1000)),
      cursor: { sync: { key: SYNC } },
      legend: { show: data.series.length === 1 },
      scales: { y: { range: (_, low, high) => [Math.min(0, low), Math.max(high, highest) * 1.12 || 1] } },
      axes: [
        { ...axis, values: (_, times, __, ___, step) => times.map((at) => (step >= DAY_S ? DAY : TIME).format(at * 1000)) },
        { ...axis, size: 58, values: (_, values) => values.map((value) => value.toLocaleString("en")) },
      ],
      series: [
        { label: "Time", value: (_, at) => (at === null || at === undefined ? "—" : spoken(at)) },
        ...data.series.map((one, place) => ({
          label: one.name,
          stroke: colour(`k${place + 1}`),
          width: 1.5,
          points: { show: false },
          value: (_, value) => (value === null || value === undefined ? "—" : `${value} ${data.unit}`),
        })),
      ],
      plugins: [marked(data, bad)],
    },
    [data.times, ...data.series.map((one) => one.values)],
    place,
  );
  new ResizeObserver(() => {
    if (place.isConnected && place.clientWidth) plot.setSize({ width: place.clientWidth, height: HEIGHT });
  }).observe(place);
}

each("[data-chart]", draw);
// A morph keeps the place and takes its content out.
document.addEventListener("htmx:afterSettle", () => document.querySelectorAll("[data-chart]").forEach(draw));
