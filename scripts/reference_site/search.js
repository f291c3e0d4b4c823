// The search box: names and titles that contain all words, best first; no network, no server.
"use strict";

const box = document.getElementById("search");
const list = document.getElementById("found");
const root = document.body.dataset.root;

// How well an entry fits: 0 not at all; whole names before beginnings, those before parts, names before texts.
function score(entry, words) {
  const name = entry[0].toLowerCase();
  const about = entry[3].toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (name === word) sum += 100;
    else if (name.startsWith(word)) sum += 40;
    else if (name.includes(word)) sum += 20;
    else if (about.includes(word)) sum += 5;
    else return 0;
  }
  return sum - name.length / 100;
}

function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? [] : SEARCH_INDEX.map((entry) => [score(entry, words), entry]).filter((pair) => pair[0] > 0);
  found.sort((a, b) => b[0] - a[0]);
  list.replaceChildren(...found.slice(0, 30).map(([, entry]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = root + entry[2];
    link.textContent = entry[0];
    link.title = entry[3];
    const kind = document.createElement("small");
    kind.textContent = " " + entry[1];
    item.append(link, kind);
    return item;
  }));
}

// index.html?q=WORDS is a search to begin with.
box.value = new URLSearchParams(location.search).get("q") || "";
search();
box.addEventListener("input", search);
box.addEventListener("keydown", (event) => {
  const first = list.querySelector("a");
  if (event.key === "Enter" && first) location.href = first.href;
  if (event.key === "Escape") { box.value = ""; search(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== box) { event.preventDefault(); box.focus(); }
});
