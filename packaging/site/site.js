// The theme puts a <nav> with a copy button into each block of code. Each gets a name, as landmarks of a page must have.
document$.subscribe(() => {
  const name = () =>
    document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
      const number = [...document.querySelectorAll("pre")].indexOf(nav.closest("pre")) + 1;
      nav.setAttribute("aria-label", `Code block ${number}`);
    });
  name();
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
});
