// @ts-check

/** An element of index.html. @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
