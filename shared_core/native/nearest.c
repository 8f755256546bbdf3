/* The best of many keys. */

#include "kernels.h"

#include <stdlib.h>

#define FEW 8 /* keys checked together: mostly none of them is gathered */

static INLINED int reaching(const int32_t *keys, Py_ssize_t n, int32_t bound)
{
    int found = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        found += keys[i] >= bound;
    return found;
}

/* The greatest bound that k of n >= k keys reach, or a lower one that no others reach. By
 * bisection: it counts where a quickselect would branch unpredictably. */
VECTORISED static int32_t kth_best(const int32_t *keys, Py_ssize_t n, Py_ssize_t k)
{
    int64_t low = INT32_MAX, high = INT32_MIN;
    for (Py_ssize_t i = 0; i < n; i++) {
        low = keys[i] < low ? keys[i] : low;
        high = keys[i] > high ? keys[i] : high;
    }
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        int found = reaching(keys, n, (int32_t)middle);
        if (found >= k)
            low = middle;
        else
            high = middle - 1;
        if (found == k)
            break;
    }
    return (int32_t)low;
}

int near_open(Near *near, Py_ssize_t k, int64_t slack)
{
    Py_ssize_t room = 4 * (k < BLOCK ? BLOCK : k);
    int32_t *keys = malloc((size_t)room * sizeof *keys);
    Py_ssize_t *rows = malloc((size_t)room * sizeof *rows);
    *near = (Near){k, 0, room, slack, INT32_MIN, INT32_MIN, keys, rows};
    return keys && rows ? 0 : -1;
}

void near_close(Near *near)
{
    free(near->keys);
    free(near->rows);
}

void near_drop(Near *near)
{
    if (near->size <= near->k)
        return;
    near->kth = kth_best(near->keys, near->size, near->k);
    int64_t bound = near->kth - near->slack;
    near->bound = bound > INT32_MIN ? (int32_t)bound : INT32_MIN;
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < near->size; i++) {
        int32_t key = near->keys[i];
        near->rows[kept] = near->rows[i];
        near->keys[kept] = key;
        kept += key >= near->bound;
    }
    near->size = kept;
}

static int near_make_room(Near *near)
{
    near_drop(near);
    if (near->size <= near->room / 2)
        return 0;
    size_t room = 2 * (size_t)near->room;
    int32_t *keys = realloc(near->keys, room * sizeof *keys);
    near->keys = keys ? keys : near->keys;
    Py_ssize_t *rows = realloc(near->rows, room * sizeof *rows);
    near->rows = rows ? rows : near->rows;
    if (!keys || !rows)
        return -1;
    near->room = (Py_ssize_t)room;
    return 0;
}

VECTORISED int near_offer(Near *near, const int32_t *keys, Py_ssize_t size, Py_ssize_t first,
                          const Py_ssize_t *rows, const char *allowed)
{
    if (near->room - near->size < size && near_make_room(near) < 0)
        return -1;
    for (Py_ssize_t start = 0, end; start < size; start = end) {
        end = start + FEW < size ? start + FEW : size;
        if (!reaching(keys + start, end - start, near->bound))
            continue;
        for (Py_ssize_t i = start; i < end; i++) {
            Py_ssize_t row = rows ? rows[i] : first + i, at = near->size;
            near->rows[at] = row;
            near->keys[at] = keys[i];
            near->size += keys[i] >= near->bound && (!allowed || allowed[row]);
        }
    }
    return 0;
}

void near_cut(Near *near)
{
    near_drop(near);
    if (near->size <= near->k)
        return;
    Py_ssize_t places = near->k, kept = 0;
    for (Py_ssize_t i = 0; i < near->size; i++)
        places -= near->keys[i] > near->kth;
    for (Py_ssize_t i = 0; i < near->size; i++)
        if (near->keys[i] > near->kth || places-- > 0) {
            near->rows[kept] = near->rows[i];
            near->keys[kept++] = near->keys[i];
        }
    near->size = kept;
}
