/* The dense leg: products of vectors, and of their 8-bit copies. */

#include "kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDEST 65536        /* dimensions of bytes whose products fit into 32 bits */
#define LONG_SCAN (1 << 22) /* products from which other threads may run meanwhile */
#define LINE 64             /* bytes of a cache line */
#define SEVERAL 8           /* queries that are multiplied with a row of bytes at once */

#define LANES 16
#define TOGETHER 4
#define FLOATS(lanes) float __attribute__((vector_size(4 * (lanes)), aligned(4), may_alias))
typedef FLOATS(LANES) Lanes;
typedef union {
    FLOATS(16) lanes;
    FLOATS(8) halves[2];
    FLOATS(4) quarters[4];
    float each[16];
} Sums;

/* The compiler generates products of either kind for each set of vector instructions. */
#if defined(__x86_64__) && defined(__GNUC__)
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#endif

/* Products of some rows of vectors, or of the first `count`, with a query: each is summed in the
 * same order on every machine. A few are computed at a time, since one alone would wait for each of
 * its sums, and the next few are prefetched, since scattered rows would wait for memory. */
#define FLOAT_PRODUCTS                                                                           \
    (const float *vectors, Py_ssize_t dim, const float *query, const Py_ssize_t *rows,           \
     Py_ssize_t count, float *products)                                                          \
    {                                                                                            \
        for (Py_ssize_t at = 0; at < count; at += TOGETHER) {                                    \
            const float *row[TOGETHER], *next[TOGETHER];                                         \
            Sums sums[TOGETHER] = {0};                                                           \
            Py_ssize_t i = 0, last = count - at < TOGETHER ? count - at : TOGETHER;              \
            for (int j = 0; j < TOGETHER; j++) {                                                 \
                Py_ssize_t number = at + (j < last ? j : 0), later = at + TOGETHER + j;          \
                later = later < count ? later : number;                                          \
                row[j] = vectors + (rows ? rows[number] : number) * dim;                         \
                next[j] = vectors + (rows ? rows[later] : later) * dim;                          \
            }                                                                                    \
            for (; i + LANES <= dim; i += LANES)                                                 \
                for (int j = 0; j < TOGETHER; j++) {                                             \
                    __builtin_prefetch(next[j] + i);                                             \
                    sums[j].lanes += *(const Lanes *)(row[j] + i) * *(const Lanes *)(query + i); \
                }                                                                                \
            for (int j = 0; j < last; j++) {                                                     \
                sums[j].halves[0] += sums[j].halves[1];                                          \
                sums[j].quarters[0] += sums[j].quarters[1];                                      \
                const float *each = sums[j].each;                                                \
                float sum = (each[0] + each[1]) + (each[2] + each[3]);                           \
                for (Py_ssize_t rest = i; rest < dim; rest++)                                    \
                    sum += row[j][rest] * query[rest];                                           \
                products[at + j] = sum;                                                          \
            }                                                                                    \
        }                                                                                        \
    }

static void float_products_plain FLOAT_PRODUCTS

#ifdef AVX2
AVX2 static void float_products_avx2 FLOAT_PRODUCTS
AVX512 static void float_products_avx512 FLOAT_PRODUCTS
#endif

static void (*float_products)(const float *, Py_ssize_t, const float *, const Py_ssize_t *,
                              Py_ssize_t, float *) = float_products_plain;

/* An integer that sorts as the float does; both zeros map to that of the positive one. */
static int32_t key_of(float value)
{
    int32_t key;
    value += 0.0f;
    memcpy(&key, &value, sizeof key);
    return key < 0 ? key ^ INT32_MAX : key;
}

/* A vector rounded to bytes, and the same numbers in two bytes each. */
typedef struct {
    int8_t *bytes;
    int16_t *words;
} Rounded;

/* Products of rows of bytes with rounded vectors, which are stored one after the other: with one,
 * or with a few, for which each row is read only once. AVX-512 (VNNI) multiplies bytes; the others
 * have to widen them and need the vectors wide. */
#define BYTE_PRODUCTS(width, several)                                                            \
    (const uint8_t *rows, Py_ssize_t count, Py_ssize_t dim, Rounded query,                       \
     int32_t (*products)[BLOCK])                                                                 \
    {                                                                                            \
        for (Py_ssize_t row = 0; row < count; row++, rows += dim) {                              \
            int32_t sums[several] = {0};                                                         \
            for (Py_ssize_t i = 0; i < dim; i++)                                                 \
                for (int j = 0; j < several; j++)                                                \
                    sums[j] += (int32_t)rows[i] * (int32_t)query.width[j * dim + i];             \
            for (int j = 0; j < several; j++)                                                    \
                products[j][row] = sums[j];                                                      \
        }                                                                                        \
    }

typedef void ByteProducts(const uint8_t *, Py_ssize_t, Py_ssize_t, Rounded, int32_t (*)[BLOCK]);

static void byte_products_plain BYTE_PRODUCTS(words, 1)
static void several_products_plain BYTE_PRODUCTS(words, SEVERAL)

#ifdef AVX2
AVX2 static void byte_products_avx2 BYTE_PRODUCTS(words, 1)
AVX2 static void several_products_avx2 BYTE_PRODUCTS(words, SEVERAL)
AVX512 static void byte_products_avx512 BYTE_PRODUCTS(bytes, 1)
AVX512 static void several_products_avx512 BYTE_PRODUCTS(bytes, SEVERAL)
#endif

static ByteProducts *byte_products = byte_products_plain;
static ByteProducts *several_products = several_products_plain;

void choose_products(void)
{
#ifdef AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) {
        float_products = float_products_avx2;
        byte_products = byte_products_avx2;
        several_products = several_products_avx2;
    }
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni")) {
        float_products = float_products_avx512;
        byte_products = byte_products_avx512;
        several_products = several_products_avx512;
    }
#endif
}

/* Round a vector to bytes, and return the most by which products with the copies of two rows can be
 * off together, in units of the products.
 *
 * A copy is v + e with |e| <= margin, the rounded query q + f with |f| = cut, so that their product
 * is off by v.f + e.q + e.f at most. `rounding` is ample for the float32 sums of products,
 * including the last digits of margin and longest; their underflow is added. Products differ by
 * less than INT32_MAX, so that as a slack it leaves out no row. */
static int64_t round_query(const Dense *dense, const float *vector, Rounded query)
{
    double largest = 0.0, size = 0.0, cut = 0.0;
    for (Py_ssize_t i = 0; i < dense->dim; i++)
        largest = fabs(vector[i]) > largest ? fabs(vector[i]) : largest;
    double scale = largest > 0.0 ? 127.0 / largest : 1.0, unscale = 1.0 / scale;
    for (Py_ssize_t i = 0; i < dense->dim; i++) {
        double value = vector[i], rounded = rint(value * scale), error = value - rounded * unscale;
        query.bytes[i] = (int8_t)rounded;
        query.words[i] = (int16_t)rounded;
        size += value * value;
        cut += error * error;
    }
    size = sqrt(size);
    cut = sqrt(cut);
    double off = dense->margin * (size + cut) + dense->longest * (cut + dense->rounding * size);
    off += (double)dense->dim * FLT_TRUE_MIN;
    off *= 2.0 * dense->scale * scale * SAFETY;
    return off < INT32_MAX ? (int64_t)off + 1 : INT32_MAX;
}

/* A query: the rows near it by the copies, and by the vectors themselves. */
typedef struct {
    const float *vector;
    Rounded rounded;
    Near copies, exact;
} DenseQuery;

/* Scan the copies, block by block for all queries: each block is read from memory once. */
static int scan_copies(const Dense *dense, DenseQuery *queries, Py_ssize_t m)
{
    int32_t products[SEVERAL][BLOCK];
    for (Py_ssize_t row = 0; row < dense->copied; row += BLOCK) {
        Py_ssize_t size = dense->copied - row < BLOCK ? dense->copied - row : BLOCK;
        const uint8_t *codes = dense->codes + row * dense->dim;
        for (Py_ssize_t i = 0, count; i < m; i += count) {
            count = m - i < SEVERAL ? 1 : SEVERAL;
            ByteProducts *multiply = count > 1 ? several_products : byte_products;
            multiply(codes, size, dense->dim, queries[i].rounded, products);
            for (Py_ssize_t j = 0; j < count; j++)
                if (near_offer(&queries[i + j].copies, products[j], size, row, NULL,
                               dense->allowed) < 0)
                    return -1;
        }
    }
    return 0;
}

/* Score a block of rows by the vectors themselves: of `rows`, or of those from `first` on. */
static int offer_exactly(const Dense *dense, DenseQuery *query, Py_ssize_t size, Py_ssize_t first,
                         const Py_ssize_t *rows, const char *allowed)
{
    float products[BLOCK];
    int32_t keys[BLOCK];
    float_products(dense->vectors + first * dense->dim, dense->dim, query->vector, rows, size,
                   products);
    for (Py_ssize_t i = 0; i < size; i++)
        keys[i] = key_of(products[i]);
    return near_offer(&query->exact, keys, size, first, rows, allowed);
}

/* Score the rows that the copies let through, and those without a copy, by the vectors. */
static int scan_exactly(const Dense *dense, DenseQuery *queries, Py_ssize_t m)
{
    for (DenseQuery *query = queries; query < queries + m; query++) {
        Near *copies = &query->copies;
        near_drop(copies);
        for (Py_ssize_t at = 0; at < copies->size; at += BLOCK) {
            Py_ssize_t size = copies->size - at < BLOCK ? copies->size - at : BLOCK;
            if (offer_exactly(dense, query, size, 0, copies->rows + at, NULL) < 0)
                return -1;
        }
    }
    for (Py_ssize_t row = dense->copied; row < dense->rows; row += BLOCK) {
        Py_ssize_t size = dense->rows - row < BLOCK ? dense->rows - row : BLOCK;
        for (DenseQuery *query = queries; query < queries + m; query++)
            if (offer_exactly(dense, query, size, row, NULL, dense->allowed) < 0)
                return -1;
    }
    for (DenseQuery *query = queries; query < queries + m; query++)
        near_cut(&query->exact);
    return 0;
}

int nearest_vectors(const Dense *dense, const float *vectors, Py_ssize_t m, Py_ssize_t k,
                    Near *found)
{
    size_t components = (size_t)(m * dense->dim) + LINE;
    int8_t *bytes = malloc(components);
    int16_t *words = malloc(components * sizeof *words);
    DenseQuery *queries = calloc((size_t)m + 1, sizeof *queries);
    int failed = !bytes || !words || !queries;
    k = k < dense->rows ? k : dense->rows;
    for (Py_ssize_t i = 0; i < m && !failed; i++) {
        Py_ssize_t first = i * dense->dim;
        queries[i].vector = vectors + first;
        int8_t *aligned = bytes + LINE - (uintptr_t)bytes % LINE;
        queries[i].rounded = (Rounded){aligned + first, words + first};
        int64_t slack = round_query(dense, vectors + first, queries[i].rounded);
        failed = near_open(&queries[i].copies, k, slack) | near_open(&queries[i].exact, k, 0);
    }
    if (!failed) {
        int takes_long = m * dense->rows * dense->dim >= LONG_SCAN;
        PyThreadState *others = takes_long ? PyEval_SaveThread() : NULL;
        failed = scan_copies(dense, queries, m) || scan_exactly(dense, queries, m);
        if (others)
            PyEval_RestoreThread(others);
    }
    for (Py_ssize_t i = 0; queries && i < m; i++) {
        near_close(&queries[i].copies);
        found[i] = queries[i].exact;
    }
    free(queries);
    free(words);
    free(bytes);
    if (failed)
        PyErr_NoMemory();
    return failed ? -1 : 0;
}

int borrow_matrix(PyObject *array, Py_buffer *view, const char *name, const char *kind, int size,
                  Py_ssize_t dim)
{
    if (borrow(array, view, name, kind, size) < 0)
        return -1;
    if (view->ndim == 2 && (dim == 0 || view->shape[1] == dim) && view->shape[1] > 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: expected vectors, of one dimension", name);
    return -1;
}

int dense_open(Dense *dense, PyObject *scan)
{
    PyObject *vectors, *codes;
    *dense = (Dense){0};
    if (!PyArg_ParseTuple(scan, "OOdddd", &vectors, &codes, &dense->scale, &dense->margin,
                          &dense->longest, &dense->rounding) ||
        borrow_matrix(vectors, dense->views, "vectors", "f", 4, 0) < 0)
        return -1;
    dense->vectors = dense->views[0].buf;
    dense->rows = dense->views[0].shape[0];
    dense->dim = dense->views[0].shape[1];
    if (codes == Py_None)
        return 0;
    if (borrow_matrix(codes, dense->views + 1, "codes", "B", 1, dense->dim) < 0)
        return -1;
    dense->codes = dense->views[1].buf;
    dense->copied = dense->views[1].shape[0];
    if (dense->copied <= dense->rows && dense->dim <= WIDEST)
        return 0;
    PyErr_SetString(PyExc_ValueError, "vectors and codes do not fit each other");
    return -1;
}

void dense_close(Dense *dense)
{
    give_back(dense->views + 1);
    give_back(dense->views);
}

void vector_scores(const float *vectors, const float *query, Py_ssize_t dim, const Py_ssize_t *rows,
                   Py_ssize_t n, double *scores)
{
    float products[BLOCK];
    for (Py_ssize_t at = 0; at < n; at += BLOCK) {
        Py_ssize_t size = n - at < BLOCK ? n - at : BLOCK;
        float_products(vectors, dim, query, rows + at, size, products);
        for (Py_ssize_t i = 0; i < size; i++)
            scores[at + i] = products[i] + 0.0f; /* no negative zero */
    }
}

PyObject *vectors_at(PyObject *module, PyObject *args)
{
    PyObject *arrays[3], *found = NULL;
    Py_buffer views[3] = {{0}};
    if (!PyArg_ParseTuple(args, "OOO", arrays, arrays + 1, arrays + 2))
        return NULL;
    if (borrow(arrays[0], views, "vectors", "f", 4) < 0 ||
        borrow(arrays[1], views + 1, "query", "f", 4) < 0 ||
        borrow(arrays[2], views + 2, "rows", "lq", 8) < 0)
        goto done;
    Py_ssize_t n = length(views + 2), dim = length(views + 1);
    if (views[0].ndim != 2 || views[0].shape[1] != dim)
        PyErr_SetString(PyExc_ValueError, "vectors and query do not fit each other");
    else if (check_rows(views + 2, views[0].shape[0]) == 0 &&
             (found = PyByteArray_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(double))))
        vector_scores(views[0].buf, views[1].buf, dim, views[2].buf, n,
                      (double *)PyByteArray_AsString(found));
done:
    for (int i = 2; i >= 0; i--)
        give_back(views + i);
    return found;
}

PyObject *unit_vector(PyObject *module, PyObject *array)
{
    Py_buffer view;
    if (borrow(array, &view, "vector", "f", 4) < 0)
        return NULL;
    PyObject *unit = PyByteArray_FromStringAndSize(view.buf, view.len);
    Py_ssize_t dim = length(&view);
    give_back(&view);
    if (!unit)
        return NULL;
    float *values = (float *)PyByteArray_AsString(unit);
    double square = 0.0;
    for (Py_ssize_t i = 0; i < dim; i++)
        square += (double)values[i] * values[i];
    float scale = (float)(1.0 / sqrt(square));
    for (Py_ssize_t i = 0; i < dim; i++)
        values[i] *= scale;
    return Py_BuildValue("Nd", unit, square);
}
