"""The style sheet of the pages, and the script of their keys. Both are embedded in the page, which fetches nothing."""

from tedsl.display.markup import Markup

CSS = Markup("""
.tedsl { --ink: #1c2128; --dim: #656d76; --line: #d0d7de; --page: #ffffff; --box: #f6f8fa; --came: #d7f5dd; --gone: #ffe3e0;
  --mark: #0757b0; --word: #8250a8; --number: #0a6c74; --string: #2c6e2f;
  color: var(--ink); background: var(--page); font: 15px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .tedsl { --ink: #e6edf3; --dim: #9198a1; --line: #3d444d; --page: #0d1117;
  --box: #151b23; --came: #12361f; --gone: #4a1d1d; --mark: #7ab7ff; --word: #d2a8ff; --number: #76d0da;
  --string: #8fd694; } }
.tedsl h1 { font-size: 1.4em; margin: 0 0 .3em; } .tedsl h2 { font-size: 1em; margin: 0; }
.tedsl code, .tedsl pre, .tedsl td, .tedsl svg text { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: 12px; }
.tedsl .dim, .tedsl summary { color: var(--dim); } .tedsl summary { cursor: pointer; }
.tedsl a { color: var(--mark); text-decoration: none; } .tedsl a:hover { text-decoration: underline; }
.tedsl pre { background: var(--box); padding: 8px 12px; overflow: auto; margin: 6px 0; border-radius: 4px; }
.tedsl .keyword { color: var(--word); font-weight: bold; } .tedsl .kind { color: var(--mark); }
.tedsl .number { color: var(--number); } .tedsl .string { color: var(--string); } .tedsl .comment { color: var(--dim); }
.tedsl section { border: 1px solid var(--line); border-radius: 6px; margin: 0 0 14px; padding: 10px 14px; }
.tedsl section:target, .tedsl section:focus { outline: 2px solid var(--mark); }
.tedsl .problem { border-left: 3px solid #d1242f; padding-left: 10px; white-space: pre-wrap; }
.tedsl .scroll { overflow-x: auto; }
.tedsl table.loops { border-collapse: collapse; width: 100%; table-layout: fixed; margin-top: 6px; }
.tedsl table.loops td { text-align: left; vertical-align: top; padding: 0 8px 0 calc(4px + var(--in, 0) * 1ch);
  text-indent: calc(var(--in, 0) * -1ch); white-space: pre-wrap; overflow-wrap: anywhere; border: 0; background: var(--page); }
.tedsl table.loops td.sign { text-align: center; color: var(--dim); padding: 0; }
.tedsl table.loops td.came, .tedsl table.loops td.came + td { background: var(--came); }
.tedsl table.loops td.gone, .tedsl table.loops td.gone + td { background: var(--gone); }
.tedsl table.loops tr.skipped td { color: var(--dim); background: var(--box); text-align: center; }
.tedsl table.facts { border-collapse: collapse; margin: 6px 0; } .tedsl table.facts th { text-align: left; font-weight: normal;
  color: var(--dim); padding: 0 14px 0 0; vertical-align: top; }
.tedsl table.facts td { text-align: left; white-space: pre-wrap; }
.tedsl svg { max-width: 100%; height: auto; }
.tedsl svg text { fill: var(--dim); } .tedsl svg text.name { fill: var(--ink); font-weight: bold; }
.tedsl svg rect { fill: var(--box); stroke: var(--line); } .tedsl svg .output rect { stroke: var(--mark); stroke-width: 2; }
.tedsl svg .inline rect { stroke-dasharray: 4 3; } .tedsl svg .input rect { fill: var(--page); }
.tedsl svg .edge { fill: none; stroke: var(--dim); } .tedsl svg .head { fill: var(--dim); }
""")

PAGE_CSS = Markup("""
body { margin: 0; } .tedsl-page { display: grid; grid-template-columns: 290px minmax(0, 1fr); min-height: 100vh; }
.tedsl-page nav { border-right: 1px solid var(--line); padding: 14px; position: sticky; top: 0; max-height: 100vh;
  overflow: auto; box-sizing: border-box; }
.tedsl-page nav ol { list-style: none; margin: 0 0 12px; padding: 0; } .tedsl-page nav li { margin: 1px 0; }
.tedsl-page nav a { display: block; padding: 1px 6px; border-radius: 4px; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; font-size: 13px; }
.tedsl-page nav a.still { color: var(--dim); } .tedsl-page nav a[aria-current] { background: var(--mark); color: var(--page); }
.tedsl-page main { padding: 18px 22px; max-width: 1500px; }
.tedsl-page kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 4px; font-size: 12px; }
@media (max-width: 800px) { .tedsl-page { display: block; } .tedsl-page nav { position: static; max-height: 40vh; } }
@media print { .tedsl-page { display: block; } .tedsl-page nav { display: none; } }
""")

# j and k (or the arrows to the right and left) go from step to step, n and p from change to change, g to the top.
SCRIPT = Markup("""
(function () {
  "use strict";
  var steps = Array.prototype.slice.call(document.querySelectorAll("section[id]"));
  var links = {};
  document.querySelectorAll("nav a[href^='#']").forEach(function (a) { links[a.getAttribute("href").slice(1)] = a; });
  var at = -1;
  function show(index) {
    if (index < 0 || index >= steps.length) { return; }
    if (at >= 0 && links[steps[at].id]) { links[steps[at].id].removeAttribute("aria-current"); }
    at = index;
    var link = links[steps[at].id];
    if (link) { link.setAttribute("aria-current", "step"); link.scrollIntoView({block: "nearest"}); }
    steps[at].focus({preventScroll: true});
    steps[at].scrollIntoView({block: "start"});
    document.body.dataset.step = steps[at].id;
  }
  function changed(from, by) {
    var index = from + by;
    while (index >= 0 && index < steps.length && steps[index].dataset.changed !== "yes") { index += by; }
    show(index);
  }
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey) { return; }
    var key = event.key;
    if (key === "j" || key === "ArrowRight") { show(at + 1); }
    else if (key === "k" || key === "ArrowLeft") { show(at - 1); }
    else if (key === "n") { changed(at, 1); }
    else if (key === "p") { changed(at < 0 ? 0 : at, -1); }
    else if (key === "g") { window.scrollTo(0, 0); }
    else { return; }
    event.preventDefault();
  });
  Object.keys(links).forEach(function (id) {
    links[id].addEventListener("click", function () {
      show(steps.findIndex(function (one) { return one.id === id; }));
    });
  });
}());
""")
