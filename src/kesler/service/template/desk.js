// Forms are sent without leaving the page, and keys press its buttons. Without this script, the
// same forms work by loading the page again.
"use strict";
(() => {
  const find = (selector, inside = document) => inside.querySelector(selector);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const store = { get: (k) => { try { return localStorage.getItem(k); } catch { return null; } },
                  set: (k, v) => { try { localStorage.setItem(k, v); } catch { /* no storage */ } } };
  let current = 0;

  const say = (text) => {
    const live = find("#live");
    live.textContent = "";
    setTimeout(() => { live.textContent = text; }, 50);
  };

  const mark = (place, focus) => {
    const items = all(".item");
    if (!items.length) return;
    current = Math.max(0, Math.min(place, items.length - 1));
    items.forEach((item, i) => item.classList.toggle("current", i === current));
    if (focus) {
      items[current].focus({ preventScroll: true });
      items[current].scrollIntoView({ block: "nearest" });
    }
  };

  const swap = (html, focus) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const main = find("main", page);
    const opened = all("details[open]").map((each) => each.closest("[data-class]")?.dataset.class);
    find("main").replaceWith(main);
    document.title = page.title;
    for (const each of all("[data-class]"))
      if (opened.includes(each.dataset.class)) find("details", each)?.setAttribute("open", "");
    ready();
    const message = find("#message");
    const first = find(".item.current .said, .item .said");
    say([message?.textContent, focus && first ? `Next: ${first.textContent}` : ""].join(" "));
    if (focus && all(".item").length) mark(current, true);
    else main.focus({ preventScroll: true });
  };

  let busy = false;
  const send = async (action, body, type) => {
    if (busy) return;
    busy = true;
    document.body.classList.add("busy");
    try {
      const headers = type ? { "Content-Type": type } : {};
      const answer = await fetch(action, { method: "POST", body, headers });
      swap(await answer.text(), find("main").dataset.page === "");
    } catch {
      say("The server could not be reached. Nothing was changed.");
      const note = document.createElement("p");
      note.className = "message failed";
      note.textContent = "The server could not be reached. Nothing was changed.";
      find("#message")?.remove();
      note.id = "message";
      find("h1").after(note);
    } finally {
      busy = false;
      document.body.classList.remove("busy");
    }
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || "whole" in form.dataset) return;
    event.preventDefault();
    const item = form.closest(".item");
    if (item) current = all(".item").indexOf(item);
    send(form.action, new URLSearchParams(new FormData(form, event.submitter)));
  });

  const sendFile = (file) => {
    if (!file) return;
    const options = new URLSearchParams({ do: "import", name: file.name });
    if (find("#skip-bad").checked) options.set("skip_bad", "true");
    send(`${location.pathname}?${options}`, file, "application/octet-stream");
  };

  const choices = () => all("[form=several]");
  const countChoices = () => {
    const n = choices().filter((each) => each.checked).length;
    find("#n-selected").textContent = n ? ` (${n})` : "";
    find("#select-all").checked = n > 0 && n === choices().length;
  };

  const ready = () => {
    if (find("#several")) {
      find("#select").hidden = false;
      countChoices();
    }
    const drop = find("#drop");
    if (drop) {
      drop.hidden = false;
      find("#file").addEventListener("change", (event) => sendFile(event.target.files[0]));
    }
    const keys = find("#use-keys");
    if (keys) {
      keys.checked = store.get("keys") !== "off";
      keys.addEventListener("change", () => store.set("keys", keys.checked ? "on" : "off"));
    }
    find("#items")?.classList.add("keyed");
    mark(current, false);
  };

  for (const name of ["dragover", "drop"])
    document.addEventListener(name, (event) => {
      if (!find("#drop")) return;
      event.preventDefault();
      find("#drop").classList.toggle("over", name === "dragover");
      if (name === "drop") sendFile(event.dataTransfer.files[0]);
    });

  document.addEventListener("change", (event) => {
    if (event.target.id === "select-all")
      for (const each of choices()) each.checked = event.target.checked;
    if (event.target.form?.id === "several") countChoices();
  });

  document.addEventListener("focusin", (event) => {
    const item = event.target.closest(".item");
    if (item) mark(all(".item").indexOf(item), false);
  });

  // Of many classes the page lists the most frequent; others are found by what is typed.
  let asked = 0;
  document.addEventListener("input", async (event) => {
    const list = event.target.list;
    if (!list || list.dataset.others === "0") return;
    const now = ++asked;
    const query = new URLSearchParams({ q: event.target.value.trim(), limit: 20 });
    try {
      const answer = await fetch(`${list.dataset.names}?${query}`);
      const found = await answer.json();
      if (now !== asked || !answer.ok) return;
      list.replaceChildren(...found.classes.map((each) => new Option("", each.name)));
    } catch { /* the list stays as it is */ }
  });

  const choose = (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    if (event.key === "Enter") event.target.form.requestSubmit();
    else if (move) choices()[choices().indexOf(event.target) + move]?.focus();
    else return;
    event.preventDefault();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.matches("[form=several]")) return choose(event);
    const typing = event.target.matches("input:not([type=checkbox]), textarea, select");
    if (event.key === "Escape" && typing && find(".item")) return mark(current, true);
    if (typing || !(find("#use-keys")?.checked ?? false)) return;
    const item = all(".item")[current];
    const moves = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
    const target =
      event.key === "/" ? find("#q")
      : event.key === "n" ? item && find(".other input[name=answer]", item)
      : event.key === "u" ? find("#undo")
      : /^[1-9]$/.test(event.key) ? item && find(`[data-key="${event.key}"]`, item)
      : null;
    if (event.key in moves && item) mark(current + moves[event.key], true);
    else if (target?.matches("input")) { target.focus(); target.select(); }
    else if (target) target.click();
    else return;
    event.preventDefault();
  });

  ready();
  if (find(".item")) mark(0, document.activeElement === document.body);
})();
