// What a report in HTML does: numbers and times, colours of charts, hiding a series, sorting, copying.
function ssbenchNumber(value) { return Number(value.toPrecision(4)).toLocaleString("en"); }
function ssbenchRank(value) { return "p" + Number((100 - 100 / value).toPrecision(6)); }
function ssbenchTime(value, long) {
  if (!long) return ssbenchNumber(value) + " s";
  const s = Math.round(Math.abs(value)), two = n => String(n).padStart(2, "0");
  return (value < 0 ? "-" : "") + Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
}
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function models() { return Bokeh.documents.flatMap(document => [...document.all_models]); }
  function paint() {
    const ink = dark.matches ? "#c9d1d9" : "#3d444d", line = dark.matches ? "#343b44" : "#d9dee3";
    for (const model of models()) {
      if (/Axis$/.test(model.type)) model.setv({axis_label_text_color: ink, major_label_text_color: ink,
        axis_line_color: line, major_tick_line_color: line, minor_tick_line_color: null,
        axis_label_text_font_style: "normal"});
      else if (model.type == "Grid") model.setv({grid_line_color: line});
    }
  }
  function ready() {
    paint();
    dark.addEventListener("change", paint);
    const named = new Map();
    for (const model of models()) if (model.type == "GlyphRenderer" && model.name)
      named.set(model.name, [...(named.get(model.name) || []), model]);
    for (const button of document.querySelectorAll(".series")) button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") != "true";
      button.setAttribute("aria-pressed", shown);
      for (const model of named.get(button.dataset.name) || []) model.visible = shown;
    });
    document.documentElement.dataset.charts = "ready";
  }
  function when() { if (window.Bokeh && Bokeh.documents.length) ready(); else setTimeout(when, 20); }
  if (document.querySelector("figure")) when();
  for (const head of document.querySelectorAll("table:not(.fixed) th")) head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], place = [...head.parentNode.children].indexOf(head);
    const down = head.dataset.down != "1"; head.dataset.down = down ? "1" : "0";
    const value = row => { const text = row.children[place].textContent, n = parseFloat(text.replace(/[,\u2265 ]/g, ""));
      return isNaN(n) ? text : n; };
    [...body.rows].sort((a, b) => { const x = value(a), y = value(b);
      const order = typeof x == typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x == "number" ? 1 : -1;
      return down ? -order : order; }).forEach(row => body.append(row));
  });
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", async () => {
    const text = button.previousElementSibling;
    try { await navigator.clipboard.writeText(text.textContent); button.textContent = "copied"; }
    catch { getSelection().selectAllChildren(text); }
  });
})();
