/* The answer to a query: the rows of either leg, scored by both, fused, and cut to the best. */

#include "kernels.h"

#include <math.h>
#include <stdlib.h>

/* Ascending rows that one leg has found, and their scores. */
typedef struct {
    const Py_ssize_t *rows;
    const double *scores;
    Py_ssize_t size;
} Found;

static int borrow_found(PyObject *tuple, const char *name, Py_ssize_t rows, Py_buffer views[2],
                        Found *found)
{
    PyObject *arrays[2];
    if (!PyTuple_Check(tuple)) {
        PyErr_Format(PyExc_TypeError, "%s: expected a tuple of rows and scores", name);
        return -1;
    }
    if (!PyArg_ParseTuple(tuple, "OO", arrays, arrays + 1) ||
        borrow(arrays[0], views, name, "lq", 8) < 0 || check_rows(views, rows) < 0 ||
        borrow(arrays[1], views + 1, name, "d", 8) < 0)
        return -1;
    *found = (Found){views[0].buf, views[1].buf, length(views)};
    if (length(views + 1) == found->size)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: rows and scores do not fit each other", name);
    return -1;
}

/* The rows of either leg, ascending, and their scores by each, NaN while they are missing. */
typedef struct {
    Py_ssize_t size, *rows, *missing, *places; /* rows without a score, and their positions */
    double *by_meaning, *by_words, *scores;    /* of the rows; of those without one */
} Pool;

static int pool_open(Pool *pool, Found dense, Found sparse)
{
    Py_ssize_t room = dense.size + sparse.size + 1, i = 0, j = 0, size = 0;
    Py_ssize_t *rows = malloc((size_t)room * 3 * sizeof *rows);
    double *scores = malloc((size_t)room * 3 * sizeof *scores);
    *pool = (Pool){.rows = rows, .by_meaning = scores};
    if (!rows || !scores) {
        PyErr_NoMemory();
        return -1;
    }
    pool->missing = rows + room;
    pool->places = rows + 2 * room;
    pool->by_words = scores + room;
    pool->scores = scores + 2 * room;
    for (; i < dense.size || j < sparse.size; size++) {
        int first = j == sparse.size || (i < dense.size && dense.rows[i] < sparse.rows[j]);
        Py_ssize_t row = rows[size] = first ? dense.rows[i] : sparse.rows[j];
        pool->by_meaning[size] = pool->by_words[size] = NAN;
        if (i < dense.size && dense.rows[i] == row)
            pool->by_meaning[size] = dense.scores[i++];
        if (j < sparse.size && sparse.rows[j] == row)
            pool->by_words[size] = sparse.scores[j++];
    }
    pool->size = size;
    return 0;
}

static void pool_close(Pool *pool)
{
    free(pool->rows);
    free(pool->by_meaning);
}

/* Gather the rows without a score; return how many there are. */
static Py_ssize_t missing(const Pool *pool, const double *scores)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < pool->size; i++) {
        pool->missing[count] = pool->rows[i];
        pool->places[count] = i;
        count += isnan(scores[i]) != 0;
    }
    return count;
}

static void fill_in(const Pool *pool, Py_ssize_t count, double *scores)
{
    for (Py_ssize_t i = 0; i < count; i++)
        scores[pool->places[i]] = pool->scores[i];
}

/* Score the rows of either leg by both, and rank them. */
static PyObject *answered(Found near, Found matching, const Dense *dense, const float *query,
                          const Words *words, Fusing how)
{
    Pool pool;
    PyObject *made = NULL;
    if (pool_open(&pool, near, matching) == 0) {
        Py_ssize_t count = missing(&pool, pool.by_meaning);
        vector_scores(dense->vectors, query, dense->dim, pool.missing, count, pool.scores);
        fill_in(&pool, count, pool.by_meaning);
        count = missing(&pool, pool.by_words);
        word_scores(words, pool.missing, count, pool.scores);
        fill_in(&pool, count, pool.by_words);
        double nearest = -INFINITY;
        for (Py_ssize_t i = 0; i < pool.size; i++)
            nearest = pool.by_meaning[i] > nearest ? pool.by_meaning[i] : nearest;
        made = ranked(pool.by_meaning, pool.by_words, pool.rows, pool.size, how);
        made = made ? Py_BuildValue("Nd", made, nearest) : NULL;
    }
    pool_close(&pool);
    return made;
}

/* Search the dense leg; `scores` is made. */
static int find_nearest(const Dense *dense, const float *query, Py_ssize_t depth, Near *nearest,
                        double **scores, Found *found)
{
    if (nearest_vectors(dense, query, 1, depth, nearest) < 0)
        return -1;
    *scores = malloc((size_t)nearest->size * sizeof **scores + 1);
    if (!*scores) {
        PyErr_NoMemory();
        return -1;
    }
    nearest_scores(nearest, *scores);
    *found = (Found){nearest->rows, *scores, nearest->size};
    return 0;
}

PyObject *answer(PyObject *module, PyObject *args)
{
    enum { QUERY, NEAR, MATCHING = NEAR + 2, ALLOWED = MATCHING + 2, ARRAYS };
    PyObject *scan, *vector, *segments, *terms, *weights, *given[2], *marks, *tuple;
    PyObject *made = NULL;
    Py_buffer views[ARRAYS] = {{0}};
    Dense dense;
    Near nearest = {0};
    double *scores = NULL;
    Search search = {0};
    Found near, matching;
    Fusing how;
    Norm norm;
    Py_ssize_t depth;
    if (!PyArg_ParseTuple(args, "OOO!O!O!(dd)OOnOO", &scan, &vector, &PyTuple_Type, &segments,
                          &PyList_Type, &terms, &PyList_Type, &weights, &norm.slope, &norm.base,
                          given, given + 1, &depth, &marks, &tuple) ||
        check_k(depth) < 0 || read_fusing(tuple, &how) < 0)
        return NULL;
    if (dense_open(&dense, scan) < 0 || borrow(vector, views + QUERY, "query", "f", 4) < 0 ||
        borrow_allowed(marks, views + ALLOWED, dense.rows) < 0)
        goto done;
    if (length(views + QUERY) != dense.dim) {
        PyErr_SetString(PyExc_ValueError, "vectors and query do not fit each other");
        goto done;
    }
    dense.allowed = search.allowed = views[ALLOWED].buf;
    if (search_open(&search, segments, terms, weights, norm, dense.rows, depth) < 0)
        goto done;
    if (given[0] != Py_None) {
        if (borrow_found(given[0], "near", dense.rows, views + NEAR, &near) < 0)
            goto done;
    } else if (find_nearest(&dense, views[QUERY].buf, depth, &nearest, &scores, &near) < 0)
        goto done;
    if (given[1] != Py_None) {
        if (borrow_found(given[1], "matching", dense.rows, views + MATCHING, &matching) < 0)
            goto done;
    } else {
        search_all(&search, 1);
        matching = (Found){search.best.rows, search.best.scores, search.best.size};
    }
    made = answered(near, matching, &dense, views[QUERY].buf, &search.words, how);
done:
    search_close(&search);
    near_close(&nearest);
    free(scores);
    for (int i = ARRAYS - 1; i >= 0; i--)
        give_back(views + i);
    dense_close(&dense);
    return made;
}
