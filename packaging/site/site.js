// The theme puts a <nav> with a copy button into each block of code, and each table into a <div> that scrolls to the side. The
// first gets a name, as landmarks of a page must have; the second can be scrolled with the keyboard.
document$.subscribe(() => {
  const nameCode = () =>
    document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
      const number = [...document.querySelectorAll("pre")].indexOf(nav.closest("pre")) + 1;
      nav.setAttribute("aria-label", `Code block ${number}`);
    });
  const name = () => {
    nameCode();
    document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((table) => table.setAttribute("tabindex", "0"));
  };
  name();
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
});
