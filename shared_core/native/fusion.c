/* The fusion of both legs. */

#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW 32 /* if no more than this many are kept, the others need not be sorted */

/* Sort `order` by descending key, stably; `spare` has room for as many. */
static void sort_stably(Py_ssize_t *order, Py_ssize_t n, const double *keys, Py_ssize_t *spare)
{
    if (n < 2)
        return;
    if (n <= 24) {
        for (Py_ssize_t i = 1, at; i < n; i++) {
            Py_ssize_t item = order[i];
            for (at = i; at > 0 && keys[order[at - 1]] < keys[item]; at--)
                order[at] = order[at - 1];
            order[at] = item;
        }
        return;
    }
    Py_ssize_t half = n / 2, left = 0, right = half, at = 0;
    sort_stably(order, half, keys, spare);
    sort_stably(order + half, n - half, keys, spare);
    memcpy(spare, order, (size_t)half * sizeof *order);
    while (left < half && right < n) { /* no branch on the keys: it would be unpredictable */
        Py_ssize_t item = spare[left], other = order[right];
        int precedes = keys[other] > keys[item];
        order[at++] = precedes ? other : item;
        right += precedes;
        left += !precedes;
    }
    memcpy(order + at, spare + left, (size_t)(half - left) * sizeof *order);
}

/* One leg of a pool. */
typedef struct {
    const double *scores;
    double *part; /* before weighting, in [0, 1] */
    Py_ssize_t *rank;
} Leg;

/* Fill in the ranks, and leave the positions in their order. */
static void rank_all(const Leg *leg, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *spare)
{
    for (Py_ssize_t i = 0; i < n; i++)
        order[i] = i;
    sort_stably(order, n, leg->scores, spare);
    for (Py_ssize_t rank = 0; rank < n; rank++)
        leg->rank[order[rank]] = rank;
}

/* Fill in the rank of one position alone. */
VECTORISED static void rank_one(const Leg *leg, Py_ssize_t n, Py_ssize_t position)
{
    double score = leg->scores[position];
    Py_ssize_t before = 0;
    for (Py_ssize_t i = 0; i < position; i++)
        before += leg->scores[i] >= score;
    for (Py_ssize_t i = position + 1; i < n; i++)
        before += leg->scores[i] > score;
    leg->rank[position] = before;
}

/* Fill in the parts: min-max, or by the ranks, with nothing for the lowest scores unless `all`. */
VECTORISED static void weigh(const Leg *leg, Py_ssize_t n, double eps, double rrf_k, int all)
{
    double lowest = leg->scores[0], highest = lowest;
    for (Py_ssize_t i = 1; i < n; i++) {
        lowest = leg->scores[i] <= lowest ? leg->scores[i] : lowest; /* of the zeros, the last */
        highest = leg->scores[i] > highest ? leg->scores[i] : highest;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (rrf_k == 0.0)
            leg->part[i] = (leg->scores[i] - lowest) / (highest - lowest + eps);
        else if (all || leg->scores[i] > lowest)
            leg->part[i] = (rrf_k + 1) / (rrf_k + 1 + (double)leg->rank[i]);
        else
            leg->part[i] = 0.0;
}

/* Put the best k positions in order: by score, then by the dense score, then by position. */
static void select_few(const double *scores, const double *dense, Py_ssize_t n, Py_ssize_t k,
                       Py_ssize_t *order)
{
    Py_ssize_t size = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t at = size;
        while (at > 0 && (scores[i] > scores[order[at - 1]] ||
                          (scores[i] == scores[order[at - 1]] && dense[i] > dense[order[at - 1]])))
            at--;
        if (at == k)
            continue;
        size += size < k;
        memmove(order + at + 1, order + at, (size_t)(size - 1 - at) * sizeof *order);
        order[at] = i;
    }
}

static PyObject *list_of(const double *values, const Py_ssize_t *numbers, const Py_ssize_t *order,
                         Py_ssize_t k)
{
    PyObject *list = PyList_New(k);
    for (Py_ssize_t i = 0; list && i < k; i++) {
        PyObject *item = values ? PyFloat_FromDouble(values[order[i]])
                                : PyLong_FromSsize_t(numbers[order[i]]);
        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* A pool being fused: the results, and working space; each of `n` items. */
typedef struct {
    Leg by_meaning, by_words;
    double *scores;
    Py_ssize_t *order, *spare; /* the best of `order` come first */
} Pool;

static void fuse(const Pool *pool, Py_ssize_t n, Fusing how)
{
    int few = how.k <= FEW && how.rrf_k == 0.0;
    if (!few) {
        rank_all(&pool->by_words, n, pool->order, pool->spare);
        rank_all(&pool->by_meaning, n, pool->order, pool->spare); /* equal scores keep its order */
    }
    weigh(&pool->by_words, n, how.eps, how.rrf_k, 0);
    weigh(&pool->by_meaning, n, how.eps, how.rrf_k, 1);
    for (Py_ssize_t i = 0; i < n; i++)
        pool->scores[i] =
            how.alpha * pool->by_meaning.part[i] + (1 - how.alpha) * pool->by_words.part[i];
    if (!few) {
        sort_stably(pool->order, n, pool->scores, pool->spare);
        return;
    }
    select_few(pool->scores, pool->by_meaning.scores, n, how.k, pool->order);
    for (Py_ssize_t i = 0; i < how.k; i++) {
        rank_one(&pool->by_meaning, n, pool->order[i]);
        rank_one(&pool->by_words, n, pool->order[i]);
    }
}

/* The best k, and the weight of the dense leg, as the columns of a `Ranking`. */
static PyObject *columns(const Pool *pool, const Py_ssize_t *rows, Py_ssize_t k, double alpha)
{
    const Py_ssize_t *order = pool->order;
    PyObject *parts[] = {
        list_of(NULL, rows, order, k),
        list_of(pool->scores, NULL, order, k),
        list_of(pool->by_meaning.scores, NULL, order, k),
        list_of(pool->by_words.scores, NULL, order, k),
        list_of(pool->by_meaning.part, NULL, order, k),
        list_of(pool->by_words.part, NULL, order, k),
        list_of(NULL, pool->by_meaning.rank, order, k),
        list_of(NULL, pool->by_words.rank, order, k),
        PyFloat_FromDouble(alpha),
    };
    enum { COLUMNS = sizeof parts / sizeof *parts };
    PyObject *made = PyTuple_New(COLUMNS);
    for (Py_ssize_t i = 0; i < COLUMNS; i++)
        if (!made || !parts[i]) {
            Py_XDECREF(parts[i]);
            Py_CLEAR(made);
        } else if (PyTuple_SetItem(made, i, parts[i]) < 0)
            Py_CLEAR(made);
    return made;
}

int read_fusing(PyObject *tuple, Fusing *how)
{
    PyObject *alpha;
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "how to fuse is a tuple of k, alpha, eps and rrf_k");
        return -1;
    }
    if (!PyArg_ParseTuple(tuple, "nOdd", &how->k, &alpha, &how->eps, &how->rrf_k) ||
        check_k(how->k) < 0)
        return -1;
    if (!PyTuple_Check(alpha)) {
        how->alpha = PyFloat_AsDouble(alpha);
        if (isnan(how->alpha)) /* which stands for a tuple */
            PyErr_SetString(PyExc_ValueError, "the weight of the dense leg is NaN");
        return PyErr_Occurred() ? -1 : 0;
    }
    Adaptive *adaptive = &how->adaptive;
    how->alpha = NAN;
    if (!PyArg_ParseTuple(alpha, "ndd", &adaptive->best, &adaptive->constant, &adaptive->odds))
        return -1;
    if (adaptive->best >= 1 && adaptive->best <= BLOCK)
        return 0;
    PyErr_Format(PyExc_ValueError, "1 to %d scores can be compared, not %zd", BLOCK,
                 adaptive->best);
    return -1;
}

PyObject *ranked(const double *dense, const double *sparse, const Py_ssize_t *rows, Py_ssize_t n,
                 Fusing how)
{
    PyObject *ranking = NULL;
    double *parts = malloc((size_t)n * 3 * sizeof *parts + 1);
    Py_ssize_t *places = malloc((size_t)n * 4 * sizeof *places + 1);
    how.k = how.k < n ? how.k : n;
    if (n < 1)
        PyErr_SetString(PyExc_ValueError, "nothing to rank");
    else if (parts && places) {
        Pool pool = {.by_meaning = {dense, parts, places},
                     .by_words = {sparse, parts + n, places + n},
                     .scores = parts + 2 * n,
                     .order = places + 2 * n,
                     .spare = places + 3 * n};
        if (isnan(how.alpha))
            how.alpha = adaptive_weight(dense, sparse, n, how.adaptive);
        fuse(&pool, n, how);
        ranking = columns(&pool, rows, how.k, how.alpha);
    } else
        PyErr_NoMemory();
    free(places);
    free(parts);
    return ranking;
}

PyObject *rank(PyObject *module, PyObject *args)
{
    PyObject *arrays[3], *tuple, *ranking = NULL;
    Py_buffer views[3] = {{0}};
    Fusing how;
    if (!PyArg_ParseTuple(args, "OOOO", arrays, arrays + 1, arrays + 2, &tuple) ||
        read_fusing(tuple, &how) < 0 || borrow(arrays[0], views, "dense", "d", 8) < 0)
        return NULL;
    if (borrow(arrays[1], views + 1, "sparse", "d", 8) < 0 ||
        borrow(arrays[2], views + 2, "rows", "lq", 8) < 0)
        goto done;
    Py_ssize_t n = length(views);
    if (length(views + 1) != n || length(views + 2) != n)
        PyErr_SetString(PyExc_ValueError, "dense, sparse and rows do not fit each other");
    else
        ranking = ranked(views[0].buf, views[1].buf, views[2].buf, n, how);
done:
    for (int i = 2; i >= 0; i--)
        give_back(views + i);
    return ranking;
}
