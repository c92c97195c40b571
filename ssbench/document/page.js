// What a report in HTML does: charts, hiding a curve, sorting, copying; and, while a run goes on, new figures.
"use strict";
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const charts = new Map();  // by the figure: {plot, data, record, buttons}
  let zoom = null;  // what all charts over time show, where the reader chose it

  // -- numbers and times

  function number(value, digits = 4) {
    return Number(value.toPrecision(digits)).toLocaleString("en", {maximumFractionDigits: 12});
  }
  function time(value, long) {
    if (!long) return number(value) + " s";
    const s = Math.round(Math.abs(value)), two = n => String(n).padStart(2, "0");
    return (value < 0 ? "-" : "") + Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
  }
  function rank(value) { return "p" + Number((100 - 100 / value).toPrecision(6)); }
  function size(bytes) {
    const step = bytes < 1 ? 0 : Math.min(5, Math.floor(Math.log10(bytes) / 3));
    return number(bytes / 1000 ** step) + " " + ["B", "kB", "MB", "GB", "TB", "PB"][step];
  }
  function place(record, value) {
    if (record.axis == "time") return time(value, record.times[1] >= 180);
    if (record.axis == "bytes") return size(value);
    return record.axis == "percentile" ? rank(value) : number(value) + " " + record.axis;
  }

  // -- round marks of axes

  const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const RANKS = [1, 2, 4, 10, 20, 100, 1e3, 1e4, 1e5, 1e6];

  function marks(low, high, most, steps) {
    const least = (high - low) / most, power = 10 ** Math.floor(Math.log10(least));
    const step = (least > 1 && steps ? steps.find(each => each >= least) : 0)
      || power * [1, 2, 5, 10].find(each => each * power >= least * 0.999);
    const found = [];
    for (let n = Math.ceil(low / step); n * step <= high * (1 + 1e-9); n++) found.push(Number((n * step).toPrecision(12)));
    return found;
  }
  function logMarks(low, high, most) {
    if (!(high > 4 * low)) return marks(low, high, Math.min(most, 5));
    const decades = Math.log10(high / low), digits = 3 * decades > most ? [1] : [1, 2, 5], found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const digit of digits) {
        const mark = Number((digit * 10 ** power).toPrecision(3));
        if (mark >= low * 0.999 && mark <= high * 1.001) found.push(mark);
      }
    const step = Math.ceil(found.length / most);
    return found.filter((_, n) => n % step == 0);
  }

  // Returns those of ascending values, on a logarithmic axis, that leave room for the texts of at most so many.
  function apart(values, low, high, most) {
    const least = (high / low) ** (1 / (2 * most)), found = [];
    for (const value of values)
      if (value >= low * 0.999 && value <= high * 1.001 && !(value < found[found.length - 1] * least)) found.push(value);
    return found;
  }

  // -- charts

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  function shade(name) { return name.startsWith("--") ? colour(name) : name; }

  function clean(values, log) { return log ? values.map(value => value > 0 ? value : null) : values; }

  function dataOf(record) {
    const tables = record.tables.map(([x, ...rest]) => [x, ...rest.map(each => clean(each, record.log))]);
    return tables.length == 1 ? tables[0] : tables.length ? uPlot.join(tables) : [[]];
  }

  function xRange(record, x) {
    if (record.axis == "time") return zoom || record.times;
    const low = x[0], high = x[x.length - 1];
    return low < high ? (record.axis == "percentile" ? [low, high] : [low / 1.05, high * 1.05]) : [low / 2, low * 2];
  }

  function yRange(record) {
    return (plot, low, high) => {
      if (record.heat) return [record.heat.y[0] / 1.05, record.heat.y[record.heat.y.length - 1] * 1.05];
      if (low == null || !isFinite(low)) return record.log ? [1, 10] : [0, 1];
      if (!record.log) return [Math.min(0, low), high > 0 ? high * 1.08 : 1];
      return low < high ? [low / 1.15, high * 1.15] : [low / 2, low * 2];
    };
  }

  // Draws the cells of a heat map: the darker, the more values in a unit of x.
  function heat(plot, {x, y, columns}) {
    const {ctx} = plot, rate = (count, column) => count / Math.max(x[column + 1] - x[column], 1e-9);
    const most = Math.max(...columns.map((cells, at) => rate(Math.max(0, ...cells.slice(1)), at)));
    const lines = y.map(value => plot.valToPos(value, "y", true));
    ctx.fillStyle = "#6b7f99";  // what is of all operations
    columns.forEach((cells, at) => {
      const left = Math.round(plot.valToPos(x[at], "x", true)), right = Math.round(plot.valToPos(x[at + 1], "x", true));
      for (let n = 1; n < cells.length; n++) {
        if (!cells[n]) continue;
        const low = Math.round(lines[cells[0] + n - 1]), high = Math.round(lines[cells[0] + n]);
        ctx.globalAlpha = 0.1 + 0.8 * Math.sqrt(rate(cells[n], at) / most);
        ctx.fillRect(left, high, Math.max(right - left, 1), Math.max(low - high, 1));
      }
    });
  }

  // Draws what is behind the curves: a heat map, stages, stalls, the drain.
  function behind(plot) {
    const {ctx, bbox} = plot, record = plot.record;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    if (record.heat) heat(plot, record.heat);
    ctx.globalAlpha = 0.16;
    for (const [low, high, fill] of record.shaded) {
      const left = plot.valToPos(low, "x", true), right = plot.valToPos(high, "x", true);
      ctx.fillStyle = fill;
      ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height);
    }
    ctx.restore();
  }

  // Draws what is before the curves: names of stages, texts at points.
  function before(plot) {
    const {ctx, bbox} = plot, record = plot.record, scale = devicePixelRatio;
    ctx.save();
    ctx.fillStyle = ctx.strokeStyle = colour("--dim");
    ctx.font = 11 * scale + "px system-ui, sans-serif";
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    ctx.setLineDash([3 * scale, 3 * scale]);
    let free = -Infinity;
    for (const [x, text] of record.marks) {
      const left = plot.valToPos(x, "x", true);
      if (left < bbox.left - 1 || left > bbox.left + bbox.width + 1) continue;
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      if (left < free) continue;
      ctx.fillText(text, left + 3 * scale, bbox.top + 2 * scale);
      free = left + ctx.measureText(text).width + 10 * scale;
    }
    const rings = [];
    record.curves.forEach((curve, place) => {
      if (!curve.labels || !plot.series[place + 1].show) return;
      // Above a curve that rises.
      [ctx.textAlign, ctx.textBaseline] = ["right", "bottom"];
      let n = 0;
      plot.data[place + 1].forEach((y, at) => {
        if (y === undefined) return;
        const text = curve.labels[n++] || "", left = plot.valToPos(plot.data[0][at], "x", true);
        if (y === null) return;
        if (curve.line) ctx.fillText(text, left - 2 * scale, plot.valToPos(y, "y", true) - 4 * scale);
        else rings.push([left, plot.valToPos(y, "y", true), text]);
      });
    });
    besideRings(ctx, rings, bbox.left + bbox.width + 20 * scale);
    ctx.restore();
  }

  // Writes a text beside each ring, where no other ring and no other text is.
  function besideRings(ctx, rings, end) {
    const scale = devicePixelRatio, high = 11 * scale, ring = 7 * scale;
    const taken = rings.map(([x, y]) => [x - ring, y - ring, x + ring, y + ring]);
    [ctx.textAlign, ctx.textBaseline] = ["left", "top"];
    for (const [x, y, text] of rings) {
      const wide = ctx.measureText(text).width, places = [];
      for (const away of [0, 8 * scale, 18 * scale]) {
        const [right, left, middle] = [x + ring + away, x - ring - away - wide, x - wide / 2];
        const [below, above, level] = [y + ring + away, y - ring - away - high, y - high / 2];
        places.push([right, y], [right, y - high], [left, y - high], [left, y], [right, level], [middle, below], [middle, above],
          [right, below], [right, above], [left, above], [left, below]);
      }
      const boxes = places.map(([across, down]) => [across, down, across + wide, down + high]);
      const found = boxes.find(box => box[0] >= 0 && box[2] <= end
        && !taken.some(other => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) || boxes[0];
      taken.push(found);
      ctx.fillText(text, found[0], found[1]);
    }
  }

  // Joins points in the order of the curve, where that is not the one of x.
  function inOrder(path) {
    return (plot, series) => {
      const values = plot.data[series], stroke = new Path2D();
      const own = values.map((_, at) => at).filter(at => values[at] !== undefined);
      let joined = false;
      for (const at of path.map(place => own[place])) {
        const known = values[at] != null;
        if (known) stroke[joined ? "lineTo" : "moveTo"](plot.valToPos(plot.data[0][at], "x", true), plot.valToPos(values[at], "y", true));
        joined = known;
      }
      return {stroke, fill: null, clip: null, band: null, gaps: null, flags: 0};
    };
  }

  // Returns the places of values without neighbours, through which no line goes.
  function alone(plot, series) {
    const values = plot.data[series], at = values.map((_, place) => place).filter(place => values[place] != null);
    return at.filter((place, n) => (n == 0 || gap(values, at[n - 1], place)) && (n == at.length - 1 || gap(values, place, at[n + 1])));
  }
  function gap(values, from, to) { return values.slice(from + 1, to).includes(null); }

  const DASHES = {dashed: [6, 4], dotted: [2, 3]};

  function options(figure, record) {
    const timed = record.axis == "time";
    const axis = () => ({stroke: () => colour("--ink"), font: "12px system-ui, sans-serif",
      grid: {stroke: () => colour("--line"), width: 1, dash: [2, 3]}, ticks: {show: false}, filter: (_, found) => found});
    const xAxis = {...axis(), size: 30, gap: 7, splits: (plot, _, low, high) => {
      const most = Math.max(2, Math.floor(plot.bbox.width / devicePixelRatio / 75));
      if (timed) return marks(low, high, most, CLOCK);
      if (record.ticks) return apart(record.ticks, low, high, most);
      return record.axis == "percentile" ? RANKS.filter(each => each >= low * 0.999 && each <= high * 1.001)
        : logMarks(low, high, most);
    }, values: (_, found) => found.map(value => ["time", "percentile", "bytes"].includes(record.axis)
      ? place(record, value) : number(value))};
    const yAxis = {...axis(), size: 54, gap: 2, splits: (plot, _, low, high) => {
      const most = Math.max(2, Math.floor(plot.bbox.height / devicePixelRatio / 26));
      return record.log ? logMarks(low, high, most) : marks(low, high, most);
    }, values: (_, found) => found.map(value => number(value))};
    return {
      width: figure.plotted.clientWidth || 300, height: figure.plotted.clientHeight || 200,
      legend: {show: false}, axes: [xAxis, yAxis],
      scales: {x: {time: false, distr: timed ? 1 : 3, auto: false, range: (_, low, high) => [low, high]},
        y: {distr: record.log ? 3 : 1, range: yRange(record)}},
      series: [{}, ...record.curves.map(curve => ({
        stroke: () => shade(curve.colour), width: curve.width, dash: DASHES[curve.dash], show: !curve.hidden,
        paths: curve.path ? inOrder(curve.path) : curve.line ? undefined : () => null, spanGaps: record.tables.length > 1 && !timed,
        // A point alone is a ring, around those of curves.
        points: curve.line ? {show: true, filter: curve.points ? null : alone, size: 2 * curve.width + 3, fill: () => shade(curve.colour)}
          : {show: true, size: 14, width: 2, stroke: () => shade(curve.colour), fill: "#0000"}}))],
      bands: record.bands.map(([high, low]) => ({series: [high + 1, low + 1], fill: record.curves[high].colour + "2e"})),
      focus: {alpha: 0.25},
      cursor: {y: false, points: {size: 6}, drag: {x: timed, y: false, setScale: false},
        sync: timed ? {key: "time", filters: {pub: type => type == "mousemove" || type == "mouseleave"}} : undefined,
        bind: {dblclick: () => () => show(null)}},
      hooks: {drawClear: [behind], draw: [before], setCursor: [told], setSelect: [selected]},
    };
  }

  function selected(plot) {
    if (plot.record.axis == "time" && plot.select.width > 5) {
      const [low, high] = [plot.select.left, plot.select.left + plot.select.width].map(at => plot.posToVal(at, "x"));
      show([low, high]);
    }
    plot.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
  }

  // Shows a part of the time, or all of it, in all charts over time.
  function show(range) {
    zoom = range;
    for (const {plot, record} of charts.values()) if (record.axis == "time") scale(plot);
  }
  function scale(plot) {
    const [min, max] = xRange(plot.record, plot.data[0]);
    plot.setScale("x", {min, max});
  }

  // Writes all figures of a chart as a table, as they are at this moment.
  function tabulated(figures, plot) {
    const {record, data} = plot, region = document.createElement("div"), table = document.createElement("table");
    const row = (part, kind, texts) => {
      const made = part.insertRow();
      for (const text of texts) Object.assign(made.appendChild(document.createElement(kind)), {textContent: text, className: "number"});
    };
    const heat = record.heat, y = n => number(heat.y[n]), share = n => Number(n).toLocaleString("en");
    const heads = heat ? ["from", "to", "values", "lowest", "highest"] : record.curves.map(each => each.name);
    row(table.createTHead(), "th", [heat ? "" : record.axis == "time" ? "time" : record.axis, ...heads].slice(heat ? 1 : 0));
    const body = table.createTBody();
    if (heat) heat.columns.forEach(([first, ...counts], at) => {
      if (counts.length) row(body, "td", [place(record, heat.x[at]), place(record, heat.x[at + 1]),
        share(counts.reduce((sum, each) => sum + each)), y(first), y(first + counts.length)]);
    });
    else data[0].forEach((x, at) => {
      const values = record.curves.map((_, n) => data[n + 1][at]);
      if (values.every(value => value == null)) return;
      row(body, "td", [place(record, x), ...values.map((value, n) => value == null ? "" : said(record, n, value, at))]);
    });
    for (const each of table.tHead.rows[0].cells) each.scope = "col";
    region.className = "table";
    region.tabIndex = 0;
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", "figures of " + figures.closest("figure").querySelector(".plot").getAttribute("aria-label"));
    region.append(table);
    figures.replaceChildren(figures.firstElementChild, region);
  }

  // Returns the value of a curve, as the legend has it; of one that is drawn by something else, that.
  function said(record, number_, value, at) {
    const shown = record.curves[number_].shown, digits = shown ? 0 : record.digits;
    return (shown ? shown[at] : value).toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
  }

  // Writes the values at the cursor beside the names of the curves.
  function told(plot) {
    const at = plot.cursor.idx, known = at != null && plot.cursor.left >= 0;
    const {record, figure} = plot;
    figure.said.textContent = known ? place(record, plot.data[0][at]) : "";
    record.curves.forEach((curve, number_) => {
      const values = plot.data[number_ + 1];
      let value = known ? values[at] : null;
      for (let off = 1; known && value === undefined && off < values.length; off++) value = values[at - off] ?? values[at + off];
      figure.buttons[number_].lastChild.textContent = value == null ? "" : " " + said(record, number_, value, at);
    });
  }

  function make(node) {
    const record = JSON.parse(node.dataset.chart), plotted = node.querySelector(".plot");
    const figure = {node, plotted, said: document.createElement("output"), buttons: []};
    node.querySelector("figcaption").append(figure.said);
    record.curves.forEach((curve, place) => {
      const button = document.createElement("button"), line = document.createElement("i");
      button.type = "button";
      button.className = "series " + (curve.line ? curve.dash : "markers");
      button.setAttribute("aria-pressed", !curve.hidden);
      line.style.setProperty("--colour", curve.colour.startsWith("--") ? `var(${curve.colour})` : curve.colour);
      button.append(line, curve.name, document.createElement("span"));
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") != "true";
        button.setAttribute("aria-pressed", shown);
        plot.setSeries(place + 1, {show: shown});
      });
      button.addEventListener("pointerenter", () => plot.setSeries(place + 1, {focus: true}));
      button.addEventListener("pointerleave", () => plot.setSeries(null, {focus: true}));
      figure.buttons.push(button);
    });
    // The data has curves of the same x together; their names stand in the order of the chart.
    const order = record.order || record.curves.map((_, place) => place);
    node.querySelector(".legend").replaceChildren(...order.map(place => figure.buttons[place]));
    const data = dataOf(record), plot = new uPlot(options(figure, record), data, plotted);
    Object.assign(plot, {record, figure});
    charts.set(node, {plot, record});
    const figures = node.querySelector(".figures");
    figures.addEventListener("toggle", () => { if (figures.open) tabulated(figures, plot); });
    scale(plot);
    sized.observe(plotted);
    node.chart = {
      names: names(record),
      // Takes new data over, so that what the reader chose stays.
      take(text) {
        const next = JSON.parse(text);
        if (names(next) != this.names) return false;
        node.dataset.chart = text;
        Object.assign(record, next);
        plot.setData(dataOf(record), false);
        scale(plot);
        return true;
      },
    };
  }
  function names(record) { return JSON.stringify([record.axis, record.log, record.curves.map(each => [each.name, each.points])]); }

  const sized = new ResizeObserver(entries => {
    for (const {target} of entries) {
      const known = charts.get(target.closest("figure"));
      const width = target.clientWidth, height = target.clientHeight;
      if (known && width && (known.plot.width != width || known.plot.height != height)) known.plot.setSize({width, height});
    }
  });
  dark.addEventListener("change", () => charts.forEach(({plot}) => plot.redraw()));

  // -- printing

  // On paper everything is open, and charts are as wide as the page: 186 mm, of A4 without its margins.
  const PAPER_WIDTH = 660;
  let opened = [];

  function redrawn(plot, size) {
    plot.setSize(size);
    plot.redraw();
  }
  // The colours of the screen still hold at this moment, and charts keep those with which they are drawn.
  function onPaper(printed) { document.documentElement.classList.toggle("paper", printed); }

  window.addEventListener("beforeprint", () => {
    onPaper(true);
    opened = [...document.querySelectorAll("details:not([open], .figures)")];
    for (const each of opened) each.open = true;
    for (const [node, {plot}] of charts)
      redrawn(plot, {width: PAPER_WIDTH, height: node.closest(".timeline") ? 130 : 180});
  });
  window.addEventListener("afterprint", () => {
    onPaper(false);
    for (const each of opened) each.open = false;
    for (const [node, {plot}] of charts) {
      const {clientWidth: width, clientHeight: height} = node.querySelector(".plot");
      if (width && height) redrawn(plot, {width, height});
    }
  });

  // -- what else a page does

  // Opens the part that the address names, where it is folded.
  function unfold() {
    const folded = document.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"] > details`);
    if (folded) folded.open = true;
  }
  window.addEventListener("hashchange", unfold);
  unfold();

  // Returns the number that a cell has, of lower bounds too; long times in milliseconds, as the others are.
  function worth(cell) {
    const text = cell.textContent.trim(), plain = text.replace(/[,<>\u2265 ]/g, ""), n = parseFloat(plain);
    const unit = /^[-+]?[\d.]+([sh])$/.exec(plain);
    return isNaN(n) ? text : n * (unit ? {s: 1e3, h: 36e5}[unit[1]] : 1);
  }
  function sort(head) {
    const body = head.closest("table").tBodies[0], place = [...head.parentNode.children].indexOf(head);
    const down = head.ariaSort != "descending";
    for (const each of head.parentNode.children) each.removeAttribute("aria-sort");
    head.ariaSort = down ? "descending" : "ascending";
    [...body.rows].sort((a, b) => { const x = worth(a.children[place]), y = worth(b.children[place]);
      const order = typeof x == typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x == "number" ? 1 : -1;
      return down ? -order : order; }).forEach(row => body.append(row));
  }
  async function copy(button) {
    const text = button.previousElementSibling;
    try { await navigator.clipboard.writeText(text.textContent); button.textContent = "copied"; }
    catch { getSelection().selectAllChildren(text); }
  }
  document.addEventListener("click", event => {
    const head = event.target.closest(".sort"), button = event.target.closest(".copy");
    if (head) sort(head.closest("th"));
    if (button) copy(button);
  });

  function begin(root) {
    for (const node of root.querySelectorAll("figure[data-chart]")) if (!node.chart) make(node);
    document.documentElement.dataset.charts = "ready";
  }

  // -- a run that goes on

  // Puts the new parts of the page in the place of those that they replace; charts stay, with new data.
  function update(order, changed) {
    const main = document.querySelector("main");
    for (const id of order) {
      const old = document.getElementById(id);
      if (!(id in changed)) continue;
      const template = document.createElement("template");
      template.innerHTML = changed[id];
      const next = template.content.firstElementChild;
      if (old) { keep(old, next); old.replaceWith(next); } else main.append(next);
    }
    let at = main.firstElementChild;
    for (const id of order) {
      const node = document.getElementById(id);
      if (node === at) at = at.nextElementSibling; else main.insertBefore(node, at);
    }
    while (at) { const gone = at; at = at.nextElementSibling; gone.remove(); }
    for (const node of [...charts.keys()]) if (!node.isConnected) { charts.get(node).plot.destroy(); charts.delete(node); }
    begin(main);
  }
  function keep(old, next) {
    const known = new Map([...old.querySelectorAll("figure[data-chart]")].map(node => [title(node), node]));
    for (const node of next.querySelectorAll("figure[data-chart]")) {
      const before = known.get(title(node));
      if (before && before.chart && before.chart.take(node.dataset.chart)) {
        before.querySelector(":scope > .note")?.remove();
        const note = node.querySelector(":scope > .note");
        if (note) before.querySelector(".figures").before(note);
        node.replaceWith(before);
      }
    }
    const open = new Set([...old.querySelectorAll("details[open] > summary")].map(each => each.textContent));
    for (const each of next.querySelectorAll("details:not(.figures) > summary")) each.parentNode.open = open.has(each.textContent);
    if (next.matches("nav")) next.scrollLeft = old.scrollLeft;
  }
  function title(node) { return node.querySelector("figcaption").firstChild.textContent; }

  function follow(address) {
    const events = new EventSource(address), root = document.documentElement;
    root.dataset.live = "waiting";
    events.addEventListener("page", event => {
      const {title: name, order, changed, last} = JSON.parse(event.data);
      document.title = name;
      update(order, changed);
      root.dataset.live = last ? "ended" : "running";
      if (last) events.close();
    });
    events.addEventListener("error", () => {
      if (root.dataset.live == "ended") return;
      root.dataset.live = "lost";
      // Refused, because many follow: the browser does not try again by itself.
      if (events.readyState == EventSource.CLOSED) setTimeout(follow, 5000, address);
    });
  }

  begin(document);
  if (document.body.dataset.address) follow(document.body.dataset.address);
})();
