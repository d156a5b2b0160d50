// Keys, live news, and what a page does better with a script.  No eval, no inline handlers; without it all works.
(function () {
  "use strict";
  var on = null, at = -1, d = document;
  function rows() { return [].slice.call(d.querySelectorAll(".hit, .ev, .queue li, .pick li")); }
  function mark(n) {
    var all = rows();
    if (!all.length) return;
    all.forEach(function (r) { r.classList.remove("row-on"); });
    at = Math.max(0, Math.min(all.length - 1, n));
    all[at].classList.add("row-on");
    all[at].scrollIntoView({ block: "nearest" });
    var link = all[at].querySelector("a, summary");
    if (link) link.focus({ preventScroll: true });
  }
  function press(key) {
    var b = d.querySelector("[data-key='" + key + "']");
    if (b) b.click();
    return !!b;
  }
  var views = { t: "timeline", r: "review", i: "injected", s: "sessions", h: "health" };
  d.addEventListener("keydown", function (e) {
    var f = e.target, k = e.key;
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || localStorage.getItem("keys") === "off") return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(f.tagName) || f.isContentEditable) return;
    var was = on;
    on = null;
    if (was === "g" && views[k]) location.href = "/ui/" + views[k];
    else if (k === "g") on = "g";
    else if (k === "/") { var q = d.getElementById("q"); if (q) q.focus(); else location.href = "/ui/"; }
    else if (k === "?") { var h = d.getElementById("keys"); if (h) h.togglePopover(); }
    else if (k === "j") mark(at + 1);
    else if (k === "k") mark(at - 1);
    else if (k === "w") { var s = rows()[Math.max(at, 0)]; s = s && s.querySelector(".why"); if (s) s.open = !s.open; }
    else if (k === "n") { var n = d.querySelector("a[rel=next]"); if (n) n.click(); else return; }
    else if (!/^[a-z]$/.test(k) || !press(k)) return;
    e.preventDefault();
  });
  var box = d.getElementById("letters");
  if (box) {
    box.checked = localStorage.getItem("keys") !== "off";
    box.closest("p").hidden = false;
    box.addEventListener("change", function () { localStorage.setItem("keys", box.checked ? "on" : "off"); });
  }
  [].forEach.call(d.querySelectorAll("form[data-auto]"), function (f) {
    f.addEventListener("change", function () { f.requestSubmit(); });
    [].forEach.call(f.querySelectorAll("button[type=submit]"), function (b) { b.hidden = true; });
  });
  // News waits behind a line: rows never move under the reader.
  var fresh = d.getElementById("fresh");
  if (fresh && window.EventSource) {
    var poll = d.querySelector("noscript"), source = new EventSource("/ui/live");
    if (poll) poll.remove();
    source.addEventListener("change", function () { fresh.hidden = false; });
    window.addEventListener("pagehide", function () { source.close(); });
  }
})();
