/* The fusion of both legs. */

#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#define FEW 32 /* of which no more than these are wanted, the rest need not be sorted */

/* Sort `order` by descending key, equal keys as they stand; `spare` has room for as many. */
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
    while (left < half && right < n) { /* without a branch on the keys, which none could guess */
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
static void rank_one(const Leg *leg, Py_ssize_t n, Py_ssize_t position)
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
static void weigh(const Leg *leg, Py_ssize_t n, double eps, double rrf_k, int all)
{
    double lowest = leg->scores[0], highest = lowest;
    for (Py_ssize_t i = 1; i < n; i++) {
        lowest = leg->scores[i] < lowest ? leg->scores[i] : lowest;
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

/* Put the best k positions into their order: by score, then by the dense score, then as they
 * stand. */
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

PyObject *rank(PyObject *module, PyObject *args)
{
    PyObject *dense_array, *sparse_array, *row_array, *lists[8], *ranking = NULL;
    Py_buffer dense, sparse = {0}, rows = {0};
    double weight, eps, rrf_k, *parts = NULL;
    Py_ssize_t k, *places = NULL;
    if (!PyArg_ParseTuple(args, "OOOdndd", &dense_array, &sparse_array, &row_array, &weight, &k,
                          &eps, &rrf_k) ||
        check_k(k) < 0)
        return NULL;
    if (borrow(dense_array, &dense, "dense", "d", 8) < 0)
        return NULL;
    if (borrow(sparse_array, &sparse, "sparse", "d", 8) < 0 ||
        borrow(row_array, &rows, "rows", "lq", 8) < 0)
        goto done;
    Py_ssize_t n = length(&dense);
    if (n < 1 || length(&sparse) != n || length(&rows) != n) {
        PyErr_SetString(PyExc_ValueError, "dense, sparse and rows do not fit each other");
        goto done;
    }
    k = k < n ? k : n;
    parts = malloc((size_t)n * 3 * sizeof *parts);
    places = malloc((size_t)n * 4 * sizeof *places);
    if (!parts || !places) {
        PyErr_NoMemory();
        goto done;
    }
    Leg by_meaning = {dense.buf, parts, places}, by_words = {sparse.buf, parts + n, places + n};
    double *scores = parts + 2 * n;
    Py_ssize_t *order = places + 2 * n, *spare = places + 3 * n;
    int few = k <= FEW && rrf_k == 0.0;
    if (!few) {
        rank_all(&by_words, n, order, spare);
        rank_all(&by_meaning, n, order, spare); /* last: equal scores come in its order */
    }
    weigh(&by_words, n, eps, rrf_k, 0);
    weigh(&by_meaning, n, eps, rrf_k, 1);
    for (Py_ssize_t i = 0; i < n; i++)
        scores[i] = weight * by_meaning.part[i] + (1 - weight) * by_words.part[i];
    if (!few)
        sort_stably(order, n, scores, spare);
    else
        select_few(scores, by_meaning.scores, n, k, order);
    for (Py_ssize_t i = 0; few && i < k; i++) {
        rank_one(&by_meaning, n, order[i]);
        rank_one(&by_words, n, order[i]);
    }
    lists[0] = list_of(NULL, rows.buf, order, k);
    lists[1] = list_of(scores, NULL, order, k);
    lists[2] = list_of(by_meaning.scores, NULL, order, k);
    lists[3] = list_of(by_words.scores, NULL, order, k);
    lists[4] = list_of(by_meaning.part, NULL, order, k);
    lists[5] = list_of(by_words.part, NULL, order, k);
    lists[6] = list_of(NULL, by_meaning.rank, order, k);
    lists[7] = list_of(NULL, by_words.rank, order, k);
    ranking = PyTuple_New(8);
    for (Py_ssize_t i = 0; i < 8; i++)
        if (!ranking || !lists[i]) {
            Py_XDECREF(lists[i]);
            Py_CLEAR(ranking);
        } else if (PyTuple_SetItem(ranking, i, lists[i]) < 0)
            Py_CLEAR(ranking);
done:
    free(places);
    free(parts);
    give_back(&rows);
    give_back(&sparse);
    give_back(&dense);
    return ranking;
}
